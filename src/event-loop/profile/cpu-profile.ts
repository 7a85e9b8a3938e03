import { StackNode } from './stack-tree.js';

/** `Profiler.Profile` of the DevTools protocol: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly scriptId: string;
      readonly url: string;
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
    readonly hitCount: number;
    readonly children: readonly number[];
  }[];
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
  locate: (node: StackNode) => string | null,
): CpuProfile {
  const nodes: CpuProfile['nodes'][number][] = [];
  const samples: number[] = [];
  const timeDeltas = [0];
  const scripts = new Map([['', '0']]);
  let totalMs = 0;
  const append = (node: StackNode): number => {
    const { name: functionName, samples: hitCount, selfMs, frame } = node;
    const [, url = '', line = 0, column = 0] =
      /^(.*):(\d+):(\d+)$/s.exec((frame === null ? null : locate(node)) ?? '') ?? [];
    if (!scripts.has(url)) scripts.set(url, String(scripts.size));
    const id = nodes.length + 1;
    const children: number[] = [];
    const [lineNumber, columnNumber] = [Number(line) - 1, Number(column) - 1];
    const callFrame = { functionName, scriptId: scripts.get(url)!, url, lineNumber, columnNumber };
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
  const root = new StackNode('', '(root)', null);
  root.children.push(...trees);
  append(root);
  if (samples.length > 0) samples.push(samples.at(-1)!);
  else timeDeltas.pop();
  const startTime = Math.round(1_000 * sinceMs);
  return { nodes, startTime, endTime: startTime + Math.round(1_000 * totalMs), samples, timeDeltas };
}
