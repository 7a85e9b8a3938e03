import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { DeadLetters } from '../../../../src/defer/spill/dead-letters.js';
import { ProcessFolder } from '../../../../src/defer/spill/process-folder.js';
import type { Place, Taken } from '../../../../src/defer/spill/segment.js';
import { Spill } from '../../../../src/defer/spill/spill.js';
import { temporaryFolder } from '../../../fixtures/disk.js';
import { spilledIn, workFiles } from '../../../fixtures/spilled.js';
import { getOrAdd } from '../durable-entry.js';

/** Spills of one path, and what each test needs to look at them. */
export function spills() {
  const at = { folder: '', root: '' };
  const reports: string[] = [];
  const opened = new Map<Spill, () => Promise<void>>();
  /** Where entries stand, by their ids. */
  const places = new Map<string, Place>();
  const take = async (spill: Spill): Promise<readonly Taken[]> => {
    const taken = await spill.takeParked();
    for (const { entry, place } of taken) places.set(entry.id, place);
    return taken;
  };
  const placesOf = (...ids: string[]): Place[] => ids.map((id) => places.get(id)!);
  let tests = 0;
  beforeEach(() => {
    tests += 1;
    at.folder = temporaryFolder();
    at.root = join(at.folder, 'spill');
    reports.length = 0;
  });
  afterEach(async () => {
    for (const close of opened.values()) await close();
    opened.clear();
  });
  return {
    at,
    reports,
    placesOf,
    async open({ path = at.root, maxBytes = 1024 ** 3, writeTimeoutMs = 20_000 } = {}) {
      const counted = { found: 0, lost: 0, damaged: 0 };
      const move = (from: string | null, to: string, entries = 1): void => {
        counted[from === null ? 'found' : to === 'dropped' ? 'damaged' : 'lost'] += entries;
      };
      const mine = tests;
      // What a folder of an earlier test still says is none of this test's reports.
      const report = (_: string, message: string): void => {
        if (mine === tests) reports.push(message);
      };
      const folder = new ProcessFolder(path, report);
      const spill = new Spill(folder, { maxBytes, writeTimeoutMs }, { move }, report);
      const dead = new DeadLetters(
        new Spill(folder, { maxBytes, writeTimeoutMs }, { move() {} }, report, 'dead'),
        report,
      );
      await folder.open();
      opened.set(spill, async () => {
        await Promise.all([spill.close(), dead.close()]);
        await folder.release();
      });
      const adopt = () => folder.keepAdopting((files) => spill.adopt(files));
      await adopt();
      return { spill, dead, counted, adopt };
    },
    /** What a crash leaves: the files as they are, of a process that no longer exists. */
    async crash(spill: Spill): Promise<void> {
      const close = opened.get(spill)!;
      opened.delete(spill);
      await close();
    },
    /** `data` null: without any. */
    async put(spill: Spill, id: string, data?: unknown): Promise<boolean> {
      const entry = data === null ? { ...getOrAdd(id), json: undefined } : getOrAdd(id, data);
      const place = await spill.append(entry);
      if (place !== null) places.set(id, place);
      return place !== null;
    },
    take,
    park: ({ segment, offset }: Place): void => segment.park(offset),
    async takeAll(spill: Spill): Promise<string[]> {
      const ids: string[] = [];
      while (spill.hasParked) ids.push(...idsOf(await take(spill)));
      return ids;
    },
    strike: (spill: Spill, ...ids: string[]): void => spill.strike(placesOf(...ids)),
    segments: (): string[] => workFiles(at.root),
    left: (): string[] => spilledIn(at.root).ids,
  };
}

export const idsOf = (taken: readonly Taken[]): string[] => taken.map(({ entry: { id } }) => id);
