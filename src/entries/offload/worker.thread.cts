// CommonJS, since piscina requires it: Node 20 and 22 abort the process when a thread is ended while it requires an ES module
// (`v8::Module::IsGraphAsync must be used on an instantiated module`). Threads that take too long to start are.
const load = () => import('../../offload/worker/serve.js');
type Serve = Awaited<ReturnType<typeof load>>['serve'];

const serve: Serve = async (task) => (await load()).serve(task);

export = { serve };
