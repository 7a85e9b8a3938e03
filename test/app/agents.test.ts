import { mkdtempSync, writeFileSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Param } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, describe, expect, it } from 'vitest';
import type { BlockRecord, PerfRecord } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { type BuiltApp, closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

const TEXT = 'compressible '.repeat(2_000);
let blocking = false;
let spin = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

@Controller()
class AgentsController {
  @Get('body/:size')
  body(@Param('size') size: string) {
    return size === 'large' ? { text: TEXT } : { text: 'small' };
  }
  @Get('blocks')
  async blocks() {
    // Not in the turn in which the last block has ended.
    await delay(1);
    blocking = true;
    spin(150);
    blocking = false;
    return 'done';
  }
}
const metadata = { controllers: [AgentsController] };

const undo: (() => void)[] = [];
afterEach(async () => {
  for (const back of undo.splice(0)) back();
  await closeApps();
});

/** The first blocks may come before the sampler; a busy machine may hide many. */
async function locatedBlock(built: BuiltApp & { url: string }): Promise<BlockRecord | undefined> {
  const patientUntilMs = performance.now() + 40_000;
  while (performance.now() < patientUntilMs) {
    await (await fetch(`${built.url}/blocks`)).text();
    await settled(built);
    const found = built.sink.records.find((record) => record.kind === 'block' && record.location !== null);
    if (found?.kind === 'block') return found;
  }
  return undefined;
}

type Methods = Record<string, (...parameters: unknown[]) => unknown>;
const targets: [name: string, methods: string[], of: (adapter: ExpressAdapter) => Methods][] = [
  [
    '`app.response`',
    ['json', 'send', 'end', 'writeHead', 'setHeader'],
    (adapter) => adapter.getInstance<{ response: Methods }>().response,
  ],
  [
    '`http.ServerResponse.prototype`',
    ['end', 'writeHead', 'setHeader'],
    () => ServerResponse.prototype as unknown as Methods,
  ],
];

describe.each(targets)('methods of %s that an agent patches when the application runs, on Express', (_, names, of) => {
  const called = async (perf: null | undefined, size: string): Promise<string[]> => {
    const adapter = new ExpressAdapter();
    const built = await listeningApp(adapter, { metadata, ...(perf === null ? { perf } : {}) });
    // The first request lets everybody look at what stands there.
    await callAccepting(`${built.url}/body/${size}`, 'gzip');
    const methods = of(adapter);
    const calls = new Set<string>();
    const back = names.map((name) => {
      const before = Object.getOwnPropertyDescriptor(methods, name);
      const original = methods[name]!;
      methods[name] = function (this: unknown, ...parameters) {
        calls.add(name);
        return original.apply(this, parameters);
      };
      return (): void => {
        if (before === undefined) delete methods[name];
        else Object.defineProperty(methods, name, before);
      };
    });
    const { text } = await callAccepting(`${built.url}/body/${size}`, 'gzip');
    for (const restore of back) restore();
    expect(JSON.parse(text)).toEqual({ text: size === 'large' ? TEXT : 'small' });
    await built.app.close();
    return [...calls].sort();
  };

  it.each(['small', 'large'])('are all called as they are without the module: a %s body', async (size) => {
    const bare = await called(null, size);
    expect(bare).toContain('end');
    expect(await called(undefined, size)).toEqual(expect.arrayContaining(bare));
  });
});

describe.each(either('fastify'))('what an agent patches on %s', (adapter) => {
  it('a formatter of stacks stays where it is, works, and hears of no look at a block', async () => {
    const built = await listeningApp(adapterOf(adapter), { metadata });
    const before = Error.prepareStackTrace;
    let inBlocks = 0;
    const formatter = (error: Error, sites: NodeJS.CallSite[]): string => {
      if (blocking) inBlocks += 1;
      return `${error.message} in ${sites.length > 0 ? 'frames' : 'nothing'}`;
    };
    undo.push(() => void Reflect.set(Error, 'prepareStackTrace', before));
    Error.prepareStackTrace = formatter;
    const block = await locatedBlock(built);
    expect(Error.prepareStackTrace).toBe(formatter);
    expect(new Error('mine').stack).toBe('mine in frames');
    expect(inBlocks).toBe(0);
    expect(block?.location).toContain('agents.test.ts');
  });

  it.each([
    ['before the application boots, and runs a regular expression', false, true],
    ['before the application boots, and throws during a block', true, true],
    ['when the application runs', true, false],
  ])('`process.getBuiltinModule` wrapped %s: no look calls it', async (_name, throws, early) => {
    let inBlocks = 0;
    const wrap = (): void => {
      const { getBuiltinModule } = process;
      undo.push(() => void (process.getBuiltinModule = getBuiltinModule));
      process.getBuiltinModule = (name: string): object | undefined => {
        if (blocking) inBlocks += 1;
        if (blocking && throws) throw new Error('no module for you');
        return /^(?:node:)?(.*)$/.test(name) ? getBuiltinModule(name) : undefined;
      };
    };
    if (early) wrap();
    const built = await listeningApp(adapterOf(adapter), { metadata });
    if (!early) wrap();
    const block = await locatedBlock(built);
    expect(inBlocks).toBe(0);
    expect(block?.location).toContain('agents.test.ts');
  });
});

it('a source map is read, and not by the thread that serves requests', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perf-maps-'));
  const before = spin;
  undo.push(() => void (spin = before));
  const code = `exports.spin = (ms) => {\n  const end = performance.now() + ms;\n  while (performance.now() < end);\n};\n`;
  const mappings = `AAAA;AACA;AACA;AACA;${'AAAA,CAAC,CAAC;'.repeat(20_000)}`;
  const map = { version: 3, sources: ['original.ts'], names: [], mappings };
  writeFileSync(join(folder, 'bundle.cjs.map'), JSON.stringify(map));
  writeFileSync(join(folder, 'bundle.cjs'), `${code}//# sourceMappingURL=bundle.cjs.map\n`);
  ({ spin } = createRequire(import.meta.url)(join(folder, 'bundle.cjs')) as { spin: typeof spin });
  const fs = process.getBuiltinModule('node:fs');
  const { readFileSync } = fs;
  const read: string[] = [];
  fs.readFileSync = ((...parameters: Parameters<typeof readFileSync>) => {
    read.push(String(parameters[0]));
    return readFileSync(...parameters);
  }) as typeof readFileSync;
  undo.push(() => void (fs.readFileSync = readFileSync));
  const built = await listeningApp(adapterOf('fastify'), { metadata });
  const isMapped = (record: PerfRecord): boolean =>
    record.kind === 'block' && record.location?.includes('original.ts') === true;
  const mapped = async (): Promise<boolean> => {
    await (await fetch(`${built.url}/blocks`)).text();
    await settled(built);
    return built.sink.records.some(isMapped);
  };
  await until('a block with the place of its source', mapped, 50_000);
  expect(read.filter((path) => path.includes('bundle.cjs'))).toEqual([]);
}, 60_000);
