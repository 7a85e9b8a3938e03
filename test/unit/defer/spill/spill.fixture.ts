import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { Place, Taken } from '../../../../src/defer/spill/segment.js';
import { Spill } from '../../../../src/defer/spill/spill.js';
import { temporaryFolder } from '../../../fixtures/disk.js';
import { entryOf } from '../durable-entry.js';

/** Spills of one file, and what each test needs to look at them. */
export function spills() {
  const at = { folder: '', file: '' };
  const reports: string[] = [];
  const opened = new Set<Spill>();
  /** Where entries stand, by their ids. */
  const places = new Map<string, Place>();
  const take = async (spill: Spill, limit: number): Promise<readonly Taken[]> => {
    const { taken } = await spill.takeParked(limit);
    for (const { entry, place } of taken) places.set(entry.id, place);
    return taken;
  };
  const placesOf = (...ids: string[]): Place[] => ids.map((id) => places.get(id)!);
  beforeEach(() => {
    at.folder = temporaryFolder();
    at.file = join(at.folder, 'spill.ndjson');
    reports.length = 0;
  });
  afterEach(async () => {
    for (const spill of opened) await spill.close().catch(() => {});
    opened.clear();
  });
  return {
    at,
    reports,
    placesOf,
    async open(path = at.file, maxBytes = 1024 ** 3) {
      const spill = new Spill({ path, maxBytes });
      const left = await spill.open((_, message) => reports.push(message));
      opened.add(spill);
      return { spill, left };
    },
    /** What a crash leaves: the files as they are, the handles gone, the lock of a process that no longer exists. */
    async crash(spill: Spill): Promise<void> {
      opened.delete(spill);
      await spill.close();
    },
    /** `data` null: without any. */
    async put(spill: Spill, id: string, data?: unknown): Promise<boolean> {
      const entry = data === null ? { ...entryOf(id), json: undefined } : entryOf(id, data);
      const place = await spill.append(entry);
      if (place !== null) places.set(id, place);
      return place !== null;
    },
    take,
    async takeAll(spill: Spill): Promise<string[]> {
      const ids: string[] = [];
      while (spill.parked > 0) ids.push(...idsOf(await take(spill, 100)));
      return ids;
    },
    strike: (spill: Spill, ...ids: string[]): void => spill.strike(placesOf(...ids)),
    segments: (): string[] => readdirSync(at.folder).filter((name) => /\.\d+$/.test(name)),
  };
}

export const idsOf = (taken: readonly Taken[]): string[] => taken.map(({ entry: { id } }) => id);
