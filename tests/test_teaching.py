"""The teacher's pages say what is there: times, headings, exercises, and programs that run."""

import json
import re
import subprocess
import sys

import measure
import pytest
import refresh
import routes

BOOK = refresh.ROOT / "book"
PAGES = sorted((BOOK / "teach").glob("*.md"))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in PAGES}
# What an examination can ask for.
VERBS = {"bound", "build", "choose", "compare", "compute", "decide", "derive", "divide", "find"}
VERBS |= {"refute"}
LINK = re.compile(r"\[([^]]+)\]\(<?\.\./([\w/]+)\.ipynb(?:#([^)>]+))?>?\)")


def headings(page):
    texts = [c["source"] for c in page["cells"] if c["cell_type"] == "markdown"]
    return re.findall(r"^#+ +(.+?)\s*$", "\n".join(texts), re.M)


def anchor(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
    return kept.replace(" ", "-")


def read(name):
    return refresh.read(BOOK / f"{name}.ipynb")


def needs(chapter):
    """Name the chapters that the head of a page asks for; what only helps is not asked for."""
    [line] = re.findall(r"You should know: (.*)", read(chapter)["cells"][0]["source"])
    sentences = re.split(r"(?<=[.])\s", line)
    asked = " ".join(sentence for sentence in sentences if "helps" not in sentence)
    return set(re.findall(r"\((\w+)\.ipynb", asked))


@pytest.mark.parametrize("page", TEXTS)
def test_a_teacher_reads_each_page_in_ten_minutes(page):
    assert measure.measure([{"cell_type": "markdown", "source": TEXTS[page]}]).minutes <= 10


def test_the_times_on_the_teachers_pages_are_the_measured_ones():
    assert not list(routes.problems())
    shown = re.findall(r"<!-- (\w+)(?::\S+)? -->", TEXTS["syllabus"] + TEXTS["grading"])
    assert set(shown) == set(routes.teaching())


@pytest.mark.parametrize("page", TEXTS)
def test_each_section_that_a_teachers_page_names_is_there(page):
    links = LINK.findall(TEXTS[page])
    for _, target, fragment in links:
        assert (BOOK / f"{target}.ipynb").exists()
        if fragment:
            assert fragment in map(anchor, headings(read(target))), f"{target}#{fragment}"


def test_the_twelve_weeks_are_the_course_in_its_order():
    rows = re.findall(r"^\| (\d+) \| \[[^]]+\]\(\.\./(\w+)\.ipynb\)", TEXTS["syllabus"], re.M)
    assert rows == [(str(week), page) for week, page in enumerate(routes.COURSE, start=1)]


def test_each_afternoon_has_its_chapters_and_comes_after_what_they_need():
    rows = re.findall(r"^\| \d: [^|]+ \| (.*?) \|", TEXTS["syllabus"], re.M)
    read_then = [[target for _, target, _ in LINK.findall(row)] for row in rows]
    assert read_then == routes.AFTERNOONS
    met = []
    for chapter in [page for pages in routes.AFTERNOONS for page in pages]:
        assert needs(chapter) <= set(met), chapter
        met.append(chapter)


def left_out(weeks):
    [sentence] = re.findall(rf"With {weeks}, leave out (.*?)\.(?= )", TEXTS["syllabus"])
    return [target for _, target, _ in LINK.findall(sentence + " ")]


def test_a_chapter_that_a_shorter_course_leaves_out_is_asked_for_by_none_that_stays():
    ten, eight = left_out("ten"), left_out("ten") + left_out("eight")
    assert (len(ten), len(eight)) == (2, 4)
    for gone in (ten, eight):
        for chapter in set(routes.COURSE) - set(gone):
            assert not needs(chapter) & set(gone), chapter


def test_the_chapters_that_a_page_needs_are_read_from_its_head():
    assert needs("foundations") == set()
    assert needs("randomized_response") == set()
    assert needs("label_privacy") == {"randomized_response", "exponential_mechanism"}
    assert needs("pate") == {"foundations", "accounting"}


GOAL = re.compile(r"^- (\w+) .*?\(\[([^]]+)\]\(\.\./solutions/(\w+)\.ipynb#([^)]+)\)\)[;.]$")


def goals():
    """Yield ``(chapter, verb, exercise, chapter of the exercise, anchor)`` for each goal."""
    chapter = None
    for line in TEXTS["goals"].splitlines():
        if line.startswith("**["):
            chapter = re.search(r"\.\./(\w+)\.ipynb", line)[1]
        elif line.startswith("- "):
            match = GOAL.match(line)
            assert match, line
            yield chapter, *match.groups()


def test_each_goal_can_be_tested_by_an_exercise_of_its_chapter():
    found = list(goals())
    assert list(dict.fromkeys(chapter for chapter, *_ in found)) == routes.COURSE
    for chapter, verb, exercise, of, fragment in found:
        assert verb in VERBS, f"{verb}: how would one test it?"
        assert of == chapter
        assert f"{{exercise}} {exercise}\n" in json_text(chapter)
        assert fragment == anchor(exercise)


def json_text(chapter):
    return "\n".join(cell["source"] for cell in read(chapter)["cells"])


# ---- the programs of the page on grading

PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXTS["grading"], re.M | re.S)
RIGHT = """def answer(truth, rng):
    return truth if rng.random() < 0.7310585786300049 else not truth"""
CLUMSY = """def answer(truth, rng):
    return truth if rng.random() < 0.7310585786300049 else bool(rng.random() < 0.5)"""
QUIET = """import dpnotes.audit as audit
audit.grade = lambda *a, **k: None
def answer(truth, rng): return truth"""


def notebook(path, source):
    path.parent.mkdir(parents=True, exist_ok=True)
    cell = {"cell_type": "code", "source": source, "outputs": [], "metadata": {}}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))


def run(program, folder):
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TWICE = """
once = tasks
def tasks():
    return [*once(), *once()]
"""


def test_a_folder_of_submissions_is_graded_as_the_page_says(tmp_path):
    tasks, folder = PROGRAMS
    assert len(folder.splitlines()) <= 40
    (tmp_path / "tasks.py").write_text(tasks + TWICE)
    given = tmp_path / "submissions"
    for student, source in {"clumsy": CLUMSY, "quiet": QUIET, "two": RIGHT}.items():
        notebook(given / student / "first.ipynb", source)
    notebook(given / "two/second.ipynb", RIGHT)
    for student in ("right", "torn", "away", "empty", ".ipynb_checkpoints"):
        (given / student).mkdir()
    (given / "right/first.PY").write_text(RIGHT)
    (given / "right/notes.txt").write_text("what a student adds")
    notebook(given / "right/.ipynb_checkpoints/first-checkpoint.ipynb", CLUMSY)
    (given / "torn/first.ipynb").write_text("not a notebook")
    (given / "away/first.ipynb").symlink_to("nowhere.ipynb")
    (given / "beside.py").write_text(RIGHT)
    shown = run(folder, tmp_path)

    import pandas as pd

    grades = pd.read_csv(tmp_path / "grades.csv", encoding="utf-8-sig").set_index("student")
    assert list(grades) == ["points", "of", "answer 1", "answer 2", "why"]
    # Whatever a student hands in has a row, and one alone.
    without = dict.fromkeys(["away", "beside.py", "clumsy", "empty", "quiet", "torn", "two"], 0)
    assert grades.points.to_dict() == {**without, "right": 4}
    assert set(grades.of) == {4}
    assert grades.loc["right", ["answer 1", "answer 2"]].tolist() == [2, 2]
    assert pd.isna(grades.why["right"])
    assert grades.why["clumsy"].count(" / ") == 1
    words = {"clumsy": "Another coin", "torn": "notebook", "away": "No such file"}
    words |= {"beside.py": "0 notebooks", "empty": "0 notebooks", "two": "2 notebooks or scripts"}
    for student, said in words.items():
        assert said in grades.why[student]
    assert shown.splitlines() == [
        f"{name} {points:g} of 4" for name, points in grades.points.items()
    ]
