import { availableParallelism } from 'node:os';
import { MIB } from '../core/figures.js';
import type { ResourceSample } from '../core/record.js';
import { findMemoryBound } from './resource-sample.js';

export interface NodeFigures {
  availableParallelism: number;
  /** Bytes; 0 or undefined is "none", and 2^64 is libuv's figure of a v1 cgroup without a limit of its own. */
  constrainedMemory: number | undefined;
}

export const nodeFigures = (): NodeFigures => ({
  availableParallelism: availableParallelism(),
  constrainedMemory: process.constrainedMemory(),
});

/** One sentence when Node's own figures disagree with the container's limits: libuv does not read all of them. */
export function disagreement(limits: ResourceSample['limits'], node: NodeFigures): string | null {
  const wrong: string[] = [];
  const { cpuCores, memoryBytes } = limits;
  if (cpuCores !== null && node.availableParallelism > Math.max(1, Math.ceil(cpuCores))) {
    wrong.push(`os.availableParallelism() says ${node.availableParallelism} at a CPU limit of ${cpuCores} cores`);
  }
  // On v2 libuv takes the lower of `memory.max` and `memory.high`.
  const right = [memoryBytes, findMemoryBound(limits)];
  if (memoryBytes !== null && !right.includes(node.constrainedMemory ?? 0)) {
    wrong.push(`process.constrainedMemory() says ${node.constrainedMemory} at a limit of ${memoryBytes / MIB} MB`);
  }
  return wrong.length === 0
    ? null
    : `Node's own figures are wrong here: ${wrong.join(', ')}. Size workers, pools and heaps by ResourceSampler.recommend().`;
}
