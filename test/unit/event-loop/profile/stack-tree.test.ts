import { expect, it } from 'vitest';
import { CUT, OTHER, StackTree, type StackNode } from '../../../../src/event-loop/profile/stack-tree.js';
import { randomOf } from '../../../fixtures/random.js';
import { frame } from '../../../fixtures/simulated-loop.js';

/** `'name samples ms'` of each node, indented below its caller. */
const textOf = ({ name, samples, selfMs, children }: StackNode): object => ({
  [`${name} ${samples} ${selfMs}`]: children.map(textOf),
});
const sumOf = (node: StackNode, figure: (node: StackNode) => number): number =>
  node.children.reduce((sum, child) => sum + sumOf(child, figure), figure(node));
const sizeOf = (node: StackNode): number => sumOf(node, () => 1);

it('counts functions below their callers, the route outermost', () => {
  const tree = new StackTree(100);
  const list = frame('list', { typeName: 'UsersController', functionLine: 10, line: 12 });
  tree.add('GET /users', [frame('parse', { functionLine: 3 }), list], false, 50);
  tree.add('GET /users', [{ ...list, line: 14 }], false, 10);
  tree.add('background', [frame('parse', { functionLine: 3 })], false, 50);
  expect(textOf(tree.root)).toEqual({
    '(root) 0 0': [
      { 'GET /users 0 0': [{ 'UsersController.list 1 10': [{ 'parse 1 50': [] }] }] },
      { 'background 0 0': [{ 'parse 1 50': [] }] },
    ],
  });
});

it('leaves out calls that only wait, and marks a stack that is cut', () => {
  const tree = new StackTree(100);
  tree.add('GET /users', [frame('work'), frame('handler', { async: true })], true, 50);
  expect(textOf(tree.root)).toEqual({
    '(root) 0 0': [{ 'GET /users 0 0': [{ [`${CUT} 0 0`]: [{ 'work 1 50': [] }] }] }],
  });
});

it('tells functions without a name apart by the line that runs', () => {
  const tree = new StackTree(100);
  tree.add('GET /users', [frame(null, { line: 3 })], false, 50);
  tree.add('GET /users', [frame(null, { line: 3 })], false, 50);
  tree.add('GET /users', [frame(null, { line: 9 })], false, 50);
  expect(textOf(tree.root)).toEqual({ '(root) 0 0': [{ 'GET /users 0 0': [{ ' 2 100': [] }, { ' 1 50': [] }] }] });
});

it('has bounded memory: what is new in a full tree is `(other)` below its caller, and no sample is lost', () => {
  const tree = new StackTree(1_000);
  const random = randomOf(7);
  for (let i = 0; i < 6_000; i++) {
    const hot = [frame('hot', { functionLine: 5 }), frame('caller', { functionLine: 6 })];
    const rare = Array.from({ length: 10 }, () => frame(`rare${Math.floor(1_000 * random())}`));
    tree.add(`GET /${i % 4}`, i % 3 === 0 ? rare : hot, false, 50);
  }
  // Each node may have `(other)` below it.
  expect(sizeOf(tree.root)).toBeLessThanOrEqual(2_000);
  expect(sumOf(tree.root, ({ samples }) => samples)).toBe(6_000);
  expect(sumOf(tree.root, ({ selfMs }) => selfMs)).toBe(300_000);
  for (const { children } of tree.root.children) {
    const caller = children.find(({ name }) => name === 'caller');
    expect(caller!.children.find(({ name }) => name === 'hot')!.samples).toBe(1_000);
  }
  expect(sumOf(tree.root, ({ name, samples }) => (name === OTHER ? samples : 0))).toBeGreaterThan(1_500);
});

it('counts a route that is new in a full tree as `(other)`, whatever it calls', () => {
  const tree = new StackTree(4);
  tree.add('GET /a', [frame('work')], false, 50);
  for (const label of ['GET /b', 'GET /c', 'GET /d']) tree.add(label, [frame('work'), frame('handler')], false, 50);
  expect(textOf(tree.root)).toEqual({
    '(root) 0 0': [
      { 'GET /a 0 0': [{ 'work 1 50': [] }] },
      { 'GET /b 0 0': [{ '(other) 1 50': [] }] },
      { '(other) 2 100': [] },
    ],
  });
});

it('adds up trees', () => {
  const [one, all] = [new StackTree(100), new StackTree(100)];
  one.add('GET /a', [frame('work')], false, 50);
  for (let i = 0; i < 2; i++) all.addTree(one);
  expect(textOf(all.root)).toEqual({ '(root) 0 0': [{ 'GET /a 0 0': [{ 'work 2 100': [] }] }] });
});
