import type { Frame } from '../sample.js';
import type { StackNode } from './stack-tree.js';

/** `Profiler.Profile` of the DevTools protocol: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly scriptId: string;
      readonly url: string;
      /** From 0; -1: none. */
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
    readonly hitCount: number;
    readonly children: readonly number[];
  }[];
  /** Microseconds. */
  readonly startTime: number;
  readonly endTime: number;
  /** Ids of nodes, and for each the microseconds since the one before: a node runs until the next one. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Below a root, the trees in their order; the samples in the order of the tree, so that a chart over time is a flame graph. */
export function makeCpuProfile(
  trees: readonly StackNode[],
  sinceMs: number,
  locate: (frame: Frame) => string | null,
): CpuProfile {
  const nodes: CpuProfile['nodes'][number][] = [];
  const samples: number[] = [];
  const timeDeltas = [0];
  const scripts = new Map<string, string>();
  const scriptId = (url: string): string => {
    if (!scripts.has(url)) scripts.set(url, url === '' ? '0' : String(scripts.size + 1));
    return scripts.get(url)!;
  };
  let totalMs = 0;
  const append = (node: Pick<StackNode, 'name' | 'frame' | 'samples' | 'selfMs' | 'children'>): number => {
    const { name: functionName, frame, samples: hitCount, selfMs } = node;
    const { url, line, column } = parsePlace(frame === null ? null : locate(frame));
    const id = nodes.length + 1;
    const children: number[] = [];
    const callFrame = { functionName, scriptId: scriptId(url), url, lineNumber: line - 1, columnNumber: column - 1 };
    nodes.push({ id, callFrame, hitCount, children });
    for (let i = 0; i < hitCount; i++) {
      samples.push(id);
      const beforeUs = Math.round(1_000 * (totalMs + (i * selfMs) / hitCount));
      timeDeltas.push(Math.round(1_000 * (totalMs + ((i + 1) * selfMs) / hitCount)) - beforeUs);
    }
    totalMs += selfMs;
    for (const child of node.children) children.push(append(child));
    return id;
  };
  append({ name: '(root)', frame: null, samples: 0, selfMs: 0, children: [...trees] });
  // The last one ends where it is seen again.
  if (samples.length > 0) samples.push(samples.at(-1)!);
  else timeDeltas.pop();
  const startTime = Math.round(1_000 * sinceMs);
  return { nodes, startTime, endTime: startTime + Math.round(1_000 * totalMs), samples, timeDeltas };
}

/** Nowhere has neither URL nor line. */
function parsePlace(place: string | null): { url: string; line: number; column: number } {
  const found = place === null ? null : /^(.*):(\d+):(\d+)$/s.exec(place);
  if (found === null) return { url: '', line: 0, column: 0 };
  return { url: found[1]!, line: Number(found[2]), column: Number(found[3]) };
}
