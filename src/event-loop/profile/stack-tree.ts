import type { Frame } from '../sample.js';

/** One function below its callers. */
export class StackNode {
  readonly children: StackNode[] = [];
  /** Samples in which it ran itself, and the milliseconds that they represent. */
  samples = 0;
  selfMs = 0;

  /** `frame`: as it was first seen; null for a node that is no function's, such as a route. */
  constructor(
    readonly name: string,
    readonly frame: Frame | null,
  ) {}

  /** With all that it has called. */
  get totalMs(): number {
    return this.children.reduce((sum, child) => sum + child.totalMs, this.selfMs);
  }

  /** The child of a name that is no function's. */
  labelled(name: string): StackNode | undefined {
    return this.children.find((child) => child.frame === null && child.name === name);
  }
}

/** Holds what did not fit. */
export const OTHER = '(other)';
/** Stands for the outermost calls of a stack that was cut. */
export const CUT = '(cut)';

/** The share of nodes that may be labels, and the share of calls that stay when the tree is full. */
const KEPT_SHARE = 1 / 8;

/** Counts stacks below labels, with a bound on its nodes: the rarest calls become one node `(other)` of their caller. */
export class StackTree {
  readonly root = new StackNode('(root)', null);
  private nodes = 1;

  constructor(private readonly maxNodes: number) {}

  get size(): number {
    return this.nodes;
  }

  /** `frames`: innermost first. Calls that only wait are left out, since they do not run. */
  add(label: string, frames: readonly Frame[], cut: boolean, ms: number): void {
    const running = frames.filter((frame) => !frame.async);
    // The label, the mark of a cut, and each frame.
    if (this.nodes + running.length + 2 > this.maxNodes) this.fold();
    let node = this.root.labelled(label) ?? this.appendLabel(label);
    if (cut) node = node.labelled(CUT) ?? this.append(node, CUT, null);
    // A stack deeper than the whole tree is cut as well.
    for (const frame of running.slice(0, this.maxNodes - this.nodes).reverse()) {
      node =
        node.children.find((child) => isSameFunction(child.frame, frame)) ?? this.append(node, nameFrame(frame), frame);
    }
    node.samples += 1;
    node.selfMs += ms;
  }

  /** Adds the counts of another tree. */
  addTree({ root }: StackTree): void {
    this.addBelow(this.root, root.children);
  }

  private addBelow(node: StackNode, children: readonly StackNode[]): void {
    for (const child of children) {
      const { name, frame } = child;
      const own =
        (frame === null ? node.labelled(name) : node.children.find((of) => isSameFunction(of.frame, frame))) ??
        this.append(node, name, frame);
      own.samples += child.samples;
      own.selfMs += child.selfMs;
      this.addBelow(own, child.children);
    }
  }

  private append(parent: StackNode, name: string, frame: Frame | null): StackNode {
    const node = new StackNode(name, frame);
    parent.children.push(node);
    this.nodes += 1;
    return node;
  }

  private appendLabel(label: string): StackNode {
    if (this.root.children.length < KEPT_SHARE * this.maxNodes) return this.append(this.root, label, null);
    return this.root.labelled(OTHER) ?? this.append(this.root, OTHER, null);
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
    this.nodes = 1 + this.root.children.length;
    for (const child of this.root.children) this.foldBelow(child, leastMs);
  }

  private foldBelow(node: StackNode, leastMs: number): void {
    const children = node.children.splice(0);
    let other: StackNode | null = null;
    for (const child of children) {
      const isOther = child.frame === null && child.name === OTHER;
      if (child.totalMs > leastMs && !isOther) {
        node.children.push(child);
        this.nodes += 1;
        this.foldBelow(child, leastMs);
        continue;
      }
      other ??= this.append(node, OTHER, null);
      addAll(other, child);
    }
  }
}

function addAll(into: StackNode, from: StackNode): void {
  into.samples += from.samples;
  into.selfMs += from.selfMs;
  for (const child of from.children) addAll(into, child);
}

function isSameFunction(a: Frame | null, b: Frame): boolean {
  if (a === null || a.name !== b.name || a.file !== b.file || a.functionLine !== b.functionLine) return false;
  return isKnownByName(a) || a.line === b.line;
}

/** Without a name or a first line, functions of one file differ by the line that runs. */
const isKnownByName = ({ name, functionLine }: Frame): boolean => name !== null && functionLine > 0;

/** The same text for the same function. */
export const keyOf = (frame: Frame): string =>
  `${frame.name}\n${frame.file}\n${frame.functionLine}\n${isKnownByName(frame) ? '' : frame.line}`;

/** `'ReportsService.render'`; empty for a function without a name, as in V8's own profiles. */
function nameFrame({ name, typeName = null }: Frame): string {
  if (name === null) return '';
  return typeName === null || typeName === '' || typeName === 'Object' || name.includes('.')
    ? name
    : `${typeName}.${name}`;
}
