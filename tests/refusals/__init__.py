"""What each module refuses: `NAME.py` lists the refusals of `dpnotes.NAME`.

Of every public function, class (`Name`) and method (`Name.method`) it holds a working call, and for
each parameter the values that are refused, and how.
"""
