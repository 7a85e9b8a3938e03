import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { BlockersProcess, markedLines } from '../fixtures/blockers-process.js';
import { Load } from '../fixtures/load.js';
import { nodeBinaries } from '../fixtures/node-versions.js';
import { until } from '../fixtures/until.js';

const DEADLINE_MS = 40_000;
const loader = fileURLToPath(new URL('../../build/test/fixtures/ts-loader.js', import.meta.url));
const FILE = 'test/fixtures/blockers.controller.ts';

describe.each(nodeBinaries())('on $name, where a loader transpiles TypeScript,', ({ execPath }) => {
  let server: BlockersProcess;
  let load: Load;
  afterEach(async () => {
    server.kill();
    await load.close();
  });

  it('a block has the lines of the source, and a hang has its file', async () => {
    server = await BlockersProcess.start({ execPath, execArgv: ['--import', pathToFileURL(loader).href] });
    load = await Load.start(server.port);
    const line = `${FILE}:${markedLines.get('loop')}:`;
    await until(
      'a block with its line',
      async () => {
        await load.get('/later/loop?ms=150');
        await server.settle();
        return server.blocks.some(({ location }) => location?.startsWith(line));
      },
      DEADLINE_MS,
    );
    const { stack } = server.blocks.find(({ location }) => location?.startsWith(line))!;
    expect(stack).toContainEqual(expect.stringContaining(`spin (${line}`));

    const hanging = load.get('/later/loop?ms=600000').catch((error: unknown) => error);
    await until('the hang to be told of', () => server.stderr.includes(' and still '), DEADLINE_MS);
    expect(server.stderr).toContain(` and still does at ${FILE} (spin)\n`);
    server.kill();
    await hanging;
  });
});
