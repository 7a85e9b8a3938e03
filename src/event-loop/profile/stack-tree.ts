import type { Frame } from '../sample.js';

export class StackNode {
  readonly children: StackNode[] = [];
  samples = 0;
  selfMs = 0;

  /** `key`: the same for the same function. `frame`: as it was first seen; null for a label, such as a route. */
  constructor(
    readonly key: string,
    readonly name: string,
    readonly frame: Frame | null,
  ) {}

  get totalMs(): number {
    return this.children.reduce((sum, child) => sum + child.totalMs, this.selfMs);
  }

  find(key: string): StackNode | undefined {
    return this.children.find((child) => child.key === key);
  }
}

export const OTHER = '(other)';
/** The node of the outermost calls of a stack that was cut. */
export const CUT = '(cut)';

/** The share of nodes that may be labels, and the share of calls that stay when the tree is full. */
const KEPT_SHARE = 1 / 8;

/** Counts stacks below labels, with a bound on its nodes: the rarest calls become one node `(other)` of their caller. */
export class StackTree {
  readonly root = new StackNode('', '(root)', null);
  size = 1;

  constructor(private readonly maxNodes: number) {}

  /** `frames`: innermost first. Calls that only wait are left out, since they do not run. */
  add(label: string, frames: readonly Frame[], cut: boolean, ms: number): void {
    const running = frames.filter((frame) => !frame.async);
    if (this.size + running.length + 2 > this.maxNodes) this.fold();
    const hasRoom = this.root.children.length < KEPT_SHARE * this.maxNodes;
    let node = this.root.find(label) ?? this.enter(this.root, hasRoom ? label : OTHER);
    if (cut) node = this.enter(node, CUT);
    for (const frame of running.slice(0, this.maxNodes - this.size).reverse())
      node = this.enter(node, formatKey(frame), nameFrame(frame), frame);
    node.samples += 1;
    node.selfMs += ms;
  }

  addTree({ root }: StackTree): void {
    this.addBelow(this.root, root.children);
  }

  private addBelow(node: StackNode, children: readonly StackNode[]): void {
    for (const { key, name, frame, samples, selfMs, children: below } of children) {
      const own = this.enter(node, key, name, frame);
      own.samples += samples;
      own.selfMs += selfMs;
      this.addBelow(own, below);
    }
  }

  private enter(parent: StackNode, key: string, name = key, frame: Frame | null = null): StackNode {
    const known = parent.find(key);
    if (known !== undefined) return known;
    const node = new StackNode(key, name, frame);
    parent.children.push(node);
    this.size += 1;
    return node;
  }

  /** Keeps the labels and the heaviest calls: each of them may get one node `(other)`, so that half of the room is free. */
  private fold(): void {
    const totals: number[] = [];
    const collect = (node: StackNode): void => {
      totals.push(node.totalMs);
      node.children.forEach(collect);
    };
    for (const { children } of this.root.children) children.forEach(collect);
    totals.sort((a, b) => b - a);
    const leastMs = totals[Math.floor(totals.length * KEPT_SHARE)] ?? 0;
    this.size = 1 + this.root.children.length;
    for (const child of this.root.children) this.foldBelow(child, leastMs);
  }

  private foldBelow(node: StackNode, leastMs: number): void {
    for (const child of node.children.splice(0)) {
      if (child.totalMs > leastMs && child.key !== OTHER) {
        node.children.push(child);
        this.size += 1;
        this.foldBelow(child, leastMs);
      } else moveInto(this.enter(node, OTHER), child);
    }
  }
}

function moveInto(node: StackNode, { samples, selfMs, children }: StackNode): void {
  node.samples += samples;
  node.selfMs += selfMs;
  for (const child of children) moveInto(node, child);
}

/** Without a name or a first line, functions of one file differ by the line that runs. */
const formatKey = ({ name, file, functionLine, line }: Frame): string =>
  `${name}\n${file}\n${functionLine}\n${name !== null && functionLine > 0 ? '' : line}`;

/** `'ReportsService.render'`; empty for a function without a name, as in V8's own profiles. */
function nameFrame({ name, typeName = null }: Frame): string {
  if (name === null) return '';
  return typeName === null || typeName === '' || typeName === 'Object' || name.includes('.')
    ? name
    : `${typeName}.${name}`;
}
