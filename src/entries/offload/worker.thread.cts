// CommonJS, since piscina requires it. Node 20 and 22 abort the process when a thread that takes too long to start is ended while it
// requires an ES module (`v8::Module::IsGraphAsync must be used on an instantiated module`): so Nest 12 is imported first.
const load = async () => {
  await import('@nestjs/core');
  return import('../../offload/worker/serve.js');
};
type Serve = Awaited<ReturnType<typeof load>>['serve'];

const importFile = (href: string): Promise<unknown> => import(href);

const serve = async (task: Parameters<Serve>[0]): Promise<void> => (await load()).serve(task, importFile);

export = { serve };
