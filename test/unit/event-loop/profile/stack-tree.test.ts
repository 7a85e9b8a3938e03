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

it('has bounded memory: the rarest calls become one, and no sample is lost', () => {
  const tree = new StackTree(1_000);
  const random = randomOf(7);
  for (let i = 0; i < 6_000; i++) {
    const hot = [frame('hot', { functionLine: 5 }), frame('caller', { functionLine: 6 })];
    const rare = Array.from({ length: 10 }, () => frame(`rare${Math.floor(1_000 * random())}`));
    tree.add(`GET /${i % 40}`, i % 3 === 0 ? rare : hot, false, 50);
    expect(tree.size).toBeLessThanOrEqual(1_000);
  }
  expect(tree.size).toBe(sizeOf(tree.root));
  expect(sumOf(tree.root, ({ samples }) => samples)).toBe(6_000);
  expect(sumOf(tree.root, ({ selfMs }) => selfMs)).toBe(300_000);
  expect(tree.root.children).toHaveLength(40);
  for (const { children } of tree.root.children) {
    const caller = children.find(({ name }) => name === 'caller');
    // Of the 100 that there were.
    expect(caller!.children.find(({ name }) => name === 'hot')!.samples).toBeGreaterThan(80);
  }
  expect(sumOf(tree.root, ({ name, samples }) => (name === OTHER ? samples : 0))).toBeGreaterThan(1_500);
});

it('counts the routes beyond an eighth of its room as one', () => {
  const tree = new StackTree(80);
  for (let i = 0; i < 200; i++) tree.add(`GET /${i}`, [frame('work')], false, 50);
  expect(tree.root.children.map(({ name }) => name)).toEqual([
    ...Array.from({ length: 10 }, (_, i) => `GET /${i}`),
    OTHER,
  ]);
  expect(tree.root.find(OTHER)!.totalMs).toBe(190 * 50);
});

it('takes a stack that is deeper than its room', () => {
  const tree = new StackTree(20);
  tree.add(
    'GET /deep',
    Array.from({ length: 60 }, (_, i) => frame(`f${i}`)),
    false,
    50,
  );
  tree.add(
    'GET /deep',
    Array.from({ length: 60 }, (_, i) => frame(`g${i}`)),
    false,
    50,
  );
  expect(tree.size).toBeLessThanOrEqual(20);
  expect(sumOf(tree.root, ({ samples }) => samples)).toBe(2);
});
