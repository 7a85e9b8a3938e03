import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AsyncFunctions } from '../../../src/event-loop/async-functions.js';
import type { Frame } from '../../../src/event-loop/frame.js';
import { captureFrames } from '../../../src/event-loop/interrupt/probe.js';

/** Not a test file of this project: its text on the disk is what runs. */
const text = `'use strict'; exports.first = async () => look('first');
let look;
async function declared() { await null; look('declared'); }
const arrow = async (x) => { await x; look('arrow'); };
class Jobs {
  async method() { await null; look('method'); }
  static async fixed() { await null; look('fixed'); }
  async #hidden() { await null; look('hidden'); }
  hidden() { return this.#hidden(); }
  async *many() { await null; look('many'); yield 1; }
  plain() { look('plain'); }
}
function asynchronously() { look('asynchronously'); }
const callback = () => look('callback');
exports.run = async (hear) => {
  look = hear;
  const jobs = new Jobs();
  await exports.first(); await declared(); await arrow(1); await jobs.method(); await Jobs.fixed(); await jobs.hidden();
  for await (const _ of jobs.many());
  jobs.plain(); asynchronously(); callback();
};
`;

describe('kinds of functions', () => {
  let folder: string;
  let file: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'perf-'));
    file = join(folder, 'jobs.cjs');
    writeFileSync(file, text);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const framesOf = async (): Promise<Map<string, Frame>> => {
    const frames = new Map<string, Frame>();
    const { run } = createRequire(import.meta.url)(file) as { run(hear: (name: string) => void): Promise<void> };
    await run((name) => frames.set(name, captureFrames()[1]!));
    return frames;
  };

  it('are told by their source text', async () => {
    const functions = new AsyncFunctions();
    const told = [...(await framesOf())].map(([name, frame]) => [name, functions.isAsync(frame)]);
    expect(Object.fromEntries(told)).toEqual({
      first: true,
      declared: true,
      arrow: true,
      method: true,
      fixed: true,
      hidden: true,
      many: true,
      plain: false,
      asynchronously: false,
      callback: false,
    });
  });

  it('are told for URLs too, and read once', async () => {
    const frame = (await framesOf()).get('declared')!;
    const functions = new AsyncFunctions();
    const asUrl = { ...frame, file: pathToFileURL(file).href };
    expect(functions.isAsync(asUrl)).toBe(true);
    rmSync(file);
    expect(functions.isAsync(asUrl)).toBe(true);
    expect(functions.isAsync(frame)).toBeNull();
    writeFileSync(file, text);
  });

  it('are unknown where there is no text', async () => {
    const frame = (await framesOf()).get('declared')!;
    const unknown = [
      { ...frame, file: null },
      { ...frame, file: 'evalmachine.<anonymous>' },
      { ...frame, functionLine: 0 },
      { ...frame, functionColumn: 0 },
      { ...frame, functionLine: 999 },
    ];
    expect(unknown.map((given) => new AsyncFunctions().isAsync(given))).toEqual(unknown.map(() => null));
  });
});
