// Each tool alone beside this library, then all of them in one application.
import type { INestApplication } from '@nestjs/common';
import { check } from './check.js';
import { type Adapter, blamesTheBlocker, recordsRight, serve, type Server, type ServerOptions } from './server.js';
import type { Tool } from './tool.js';
import { tools } from './tools.js';

const NODE = Number(process.versions.node.split('.')[0]);

export async function beside(adapter: Adapter): Promise<void> {
  const available = [...tools, ...(NODE < 22 ? [] : (await import('./tools-node22.js')).tools)];
  for (const tool of available) await check(tool.name, () => together(adapter, [tool]));
  await check('all in one application', () => together(adapter, available));
}

async function together(adapter: Adapter, chosen: readonly Tool[]): Promise<void> {
  const ready = await Promise.all(chosen.map((tool) => tool.setUp(adapter)));
  let server: Server | null = null;
  try {
    server = await serve(adapter, merged(ready.map(({ options }) => options)));
    await recordsRight(server);
    if (chosen.length > 1) await blamesTheBlocker(server);
    for (const { works } of ready) await works(server);
  } finally {
    await server?.app.close();
    for (const { end } of ready) await end?.();
  }
}

function merged(all: readonly ServerOptions[]): ServerOptions {
  return {
    metadata: {
      imports: all.flatMap(({ metadata }) => metadata?.imports ?? []),
      controllers: all.flatMap(({ metadata }) => metadata?.controllers ?? []),
    },
    nest: Object.assign({}, ...all.map(({ nest }) => nest)) as NonNullable<ServerOptions['nest']>,
    prepare: async (app: INestApplication) => {
      for (const { prepare } of all) await prepare?.(app);
    },
  };
}
