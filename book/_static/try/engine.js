// The one interface to Python in the page, so that what runs it can be changed:
//
//   load(home, loaded)  get it from the folder `home`, telling loaded(bytes) as they come
//   run(source, print)  run a program, telling print(text, isError); gives {failed, found}
//   stop()              end whatever it is doing, at once; the next load is quick
//
// A promise that does not come true says why in its error; after `stop` that is `Stopped`.
export class Stopped extends Error {}

let worker, compiled, ready, pending;

export function load(home, loaded) {
  ready ??= start(home, loaded);
  return ready;
}

async function start(home, loaded) {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  await ask({ load: { home, compiled } }, { loaded });
}

export async function run(source, print) {
  const { done } = await ask({ run: source }, { print });
  return done;
}

export function stop() {
  end(new Stopped("Stopped."));
}

function end(error) {
  worker?.terminate();
  worker = ready = undefined;
  pending?.(error);
}

function ask(message, { loaded, print }) {
  return new Promise((resolve, reject) => {
    pending = reject;
    worker.onmessage = ({ data }) => {
      if (data.loaded) loaded(data.loaded);
      // What was compiled once starts again in a moment. Firefox does not hand a page what its
      // policy forbids it to compile; there the message is lost, and the next start compiles.
      else if (data.compiled) compiled = data.compiled;
      else if (data.print) print?.(data.print, data.error);
      else if (data.broken) end(Object.assign(new Error(data.broken), { old: data.old }));
      else resolve(data);
    };
    worker.onerror = (event) => end(new Error(event.message || "Python could not be started"));
    worker.postMessage(message);
  });
}
