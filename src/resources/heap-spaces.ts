import { totalmem } from 'node:os';
import { MIB } from '../core/figures.js';

/** The most that V8 lets its heap take, bytes. */
export interface HeapSpaces {
  /** `--max-old-space-size`, or what V8 has chosen without it. */
  readonly oldBytes: number;
  /** Beside an old space that `--max-old-space-size` sets. */
  readonly youngBytes: number;
}

/** `heap_size_limit` of V8 is the sum of both spaces. Never throws. */
export function heapSpaces(
  heapLimitBytes: number,
  flags = flagsOfNode(),
  nodeVersion = process.versions.node,
  memoryBytes = percentageBase(),
): HeapSpaces {
  const oldMb = percentageMb(flags, memoryBytes) ?? readMegabytes('old', flags);
  if (oldMb !== null) return { oldBytes: oldMb * MIB, youngBytes: Math.max(0, heapLimitBytes - oldMb * MIB) };
  const youngBytes = mostYoungMb(nodeVersion, readMegabytes('semi', flags)) * MIB;
  const now = Math.min(youngBytes, (heapLimitBytes * youngBytes) / (OLD_OF_MOST_YOUNG_BYTES + youngBytes));
  return { oldBytes: heapLimitBytes - now, youngBytes };
}

/** Without flags the young space grows with the old one up to this size of it. */
const OLD_OF_MOST_YOUNG_BYTES = 2_048 * MIB;

/** Three semi-spaces: V8 of Node 20 and 22 has 16 MB for each, that of Node 24 has 64, and that of Node 26 has 32. */
function mostYoungMb(nodeVersion: string, semiSpaceMb: number | null): number {
  const major = Number.parseInt(nodeVersion, 10);
  return 3 * (semiSpaceMb ?? (major >= 26 ? 32 : major >= 24 ? 64 : 16));
}

/** The memory that `--max-old-space-size-percentage` is a share of; null: this Node has no such flag. */
export function percentageBase(
  hasFlag = process.allowedNodeEnvironmentFlags.has('--max-old-space-size-percentage'),
  constrainedBytes = process.constrainedMemory(),
  totalBytes = totalmem(),
): number | null {
  if (!hasFlag) return null;
  // 0 is "no limit".
  return Math.min(constrainedBytes || totalBytes, totalBytes);
}

/** The flag counts more than `--max-old-space-size`. */
function percentageMb(flags: string, memoryBytes: number | null): number | null {
  const flag = /--max[-_]old[-_]space[-_]size[-_]percentage[= ]([\d.]+)/g;
  const percentage = Number([...flags.matchAll(flag)].at(-1)?.[1] ?? 0);
  return memoryBytes === null || !(percentage > 0) ? null : (memoryBytes * percentage) / 100 / MIB;
}

/** The command line counts more than the environment, and of one flag the last. */
const flagsOfNode = (): string => [process.env['NODE_OPTIONS'] ?? '', ...process.execArgv].join(' ');

function readMegabytes(space: 'old' | 'semi', flags: string): number | null {
  const flag = new RegExp(`--max[-_]${space}[-_]space[-_]size[= ](\\d+)`, 'g');
  const given = [...flags.matchAll(flag)].at(-1)?.[1];
  // 0 leaves it to V8.
  return given === undefined || Number(given) === 0 ? null : Number(given);
}
