import { mkdtempSync, readFileSync, readdirSync, rmSync, appendFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JournalEntry } from '../../../../src/defer/durable/durable-store.js';
import { SpillFile } from '../../../../src/defer/durable/spill-file.js';
import { until } from '../../../fixtures/until.js';

let folder: string;
let file: string;
const reports: string[] = [];
const opened: SpillFile[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perf-spill-'));
  file = join(folder, 'spill.ndjson');
  reports.length = 0;
});
afterEach(async () => {
  for (const spill of opened.splice(0)) await spill.close().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

async function open(path = file): Promise<{ spill: SpillFile; left: number }> {
  const spill = new SpillFile(path);
  const left = await spill.open((_, message) => reports.push(message));
  opened.push(spill);
  return { spill, left };
}
/** What a crash leaves: the file as it is, the handles gone, the lock of a process that no longer exists. */
async function crash(spill: SpillFile): Promise<void> {
  opened.splice(opened.indexOf(spill), 1);
  await spill.close();
}
const entry = (id: string, ...[data = { id }]: [data?: unknown]): JournalEntry => ({
  id,
  work: 'SendReceipt',
  name: 'SendReceipt',
  json: data === null ? undefined : JSON.stringify(data),
  requestId: null,
  timeoutMs: 1_000,
  attempts: 1,
  envelope: false,
  at: 1,
});
const idsOf = (entries: JournalEntry[]): string[] => entries.map(({ id }) => id);

describe('the spill file', () => {
  it('has an entry on disk before append() resolves, readable by anyone who looks', async () => {
    const { spill } = await open();
    expect(await spill.append(entry('a-1', { orderId: 'x\ny' }))).toBe(true);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ id: 'a-1', data: { orderId: 'x\ny' } });
  });

  it('is empty again when everything is struck off', async () => {
    const { spill } = await open();
    await Promise.all([spill.append(entry('a-1')), spill.append(entry('a-2'))]);
    spill.strike(['a-1']);
    spill.strike(['a-2']);
    await until('the file to be emptied', () => readFileSync(file, 'utf8') === '');
  });

  it('gives an earlier process’ entries back, oldest first, without those struck off', async () => {
    const first = await open();
    for (let i = 0; i < 10; i++) await first.spill.append(entry(`a-${i}`, i === 3 ? null : { i }));
    first.spill.strike(['a-0', 'a-5']);
    await crash(first.spill);
    const second = await open();
    expect(second.left).toBe(8);
    const some = await second.spill.takeParked(3);
    expect(idsOf(some)).toEqual(['a-1', 'a-2', 'a-3']);
    expect(some.map(({ json }) => json)).toEqual(['{"i":1}', '{"i":2}', undefined]);
    expect(idsOf(await second.spill.takeParked(100))).toEqual(['a-4', 'a-6', 'a-7', 'a-8', 'a-9']);
    expect(second.spill.parked).toBe(0);
    second.spill.strike(['a-1', 'a-2', 'a-3', 'a-4', 'a-6', 'a-7', 'a-8', 'a-9']);
    await until('the old file to be deleted', () => !readdirSync(folder).includes('spill.ndjson.1'));
  });

  it('survives any number of crashes without losing an entry', async () => {
    for (let boot = 0; boot < 4; boot++) {
      const { spill, left } = await open();
      expect(left).toBe(boot);
      await spill.append(entry(`boot-${boot}`));
      await crash(spill);
    }
    const { spill } = await open();
    const ids: string[] = [];
    while (spill.parked > 0) ids.push(...idsOf(await spill.takeParked(100)));
    expect(ids).toEqual(['boot-0', 'boot-1', 'boot-2', 'boot-3']);
  });

  it('skips a line that a crash has torn, says so, and keeps the next ones whole', async () => {
    const first = await open();
    await first.spill.append(entry('a-1'));
    await crash(first.spill);
    appendFileSync(file, '{"id":"a-2","work":"SendRec');
    const second = await open();
    expect(second.left).toBe(1);
    expect(reports).toEqual([
      'spill file holds damaged lines: 1 were skipped. Torn by a crash, their responses were not sent.',
    ]);
    await second.spill.append(entry('a-3'));
    await crash(second.spill);
    const third = await open();
    expect(third.left).toBe(2);
  });

  it('parks entries that memory has no room for and brings them back', async () => {
    const { spill } = await open();
    for (let i = 0; i < 5; i++) await spill.append(entry(`a-${i}`));
    spill.park('a-2');
    spill.park('a-4');
    expect(spill.parked).toBe(2);
    expect(idsOf(await spill.takeParked(10))).toEqual(['a-2', 'a-4']);
    expect(await spill.takeParked(10)).toEqual([]);
  });

  it('never brings an entry back that is struck off while the file is being read', async () => {
    const { spill } = await open();
    const ids = Array.from({ length: 300 }, (_, i) => `a-${i}`);
    await Promise.all(ids.map((id) => spill.append(entry(id))));
    for (const id of ids.slice(200)) spill.park(id);
    const taken: string[] = [];
    const reading = (async () => {
      while (spill.parked > 0) taken.push(...idsOf(await spill.takeParked(5)));
    })();
    for (const id of ids.slice(0, 200)) {
      spill.strike([id]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await reading;
    expect(taken).toEqual(ids.slice(200));
  });

  it('moves a full file aside and deletes it when its last entry is struck off', async () => {
    const { spill } = await open();
    const big = 'x'.repeat(1024 * 1024);
    const ids = Array.from({ length: 20 }, (_, i) => `a-${i}`);
    for (const id of ids) await spill.append(entry(id, big));
    expect(readdirSync(folder).filter((name) => /\.\d+$/.test(name)).length).toBeGreaterThanOrEqual(2);
    spill.strike(ids);
    await until(
      'all but the active file to be deleted',
      () => !readdirSync(folder).some((name) => /\.\d+$/.test(name)),
    );
    await until('the active file to be emptied', () => readFileSync(file, 'utf8') === '');
  });

  it('is a file in the folder when its path is one', async () => {
    const { spill } = await open(folder);
    await spill.append(entry('a-1'));
    expect(readdirSync(folder).toSorted()).toEqual(['deferred.ndjson', 'deferred.ndjson.lock']);
  });

  it('refuses a file that a living process uses', async () => {
    await open();
    await expect(open()).rejects.toThrow(/PERF_ERR_STORE: `spillPath` is in use by process \d+/);
  });

  it('takes over the lock of a process that was killed', async () => {
    const script = `require('node:fs').writeFileSync(process.argv[1], '', { flag: 'a' }); process.stdout.write('x'); setInterval(() => {}, 1000)`;
    const child = spawn(process.execPath, ['-e', script, file], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    writeFileSync(`${file}.lock`, `${child.pid} ${started}`);
    await expect(open()).rejects.toThrow('PERF_ERR_STORE');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { spill } = await open();
    expect(await spill.append(entry('a-1'))).toBe(true);
  });

  it('says that the disk refuses, and does not keep a response waiting for it', async () => {
    const { spill } = await open();
    await crash(spill);
    expect(await spill.append(entry('a-1'))).toBe(false);
    expect(reports).toEqual([expect.stringMatching(/^spill file: could not write: .*in memory only/)]);
  });

  it('shares one write among entries that arrive together', async () => {
    const { spill } = await open();
    const results = await Promise.all(Array.from({ length: 500 }, (_, i) => spill.append(entry(`a-${i}`))));
    expect(results.every(Boolean)).toBe(true);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(500);
  });
});
