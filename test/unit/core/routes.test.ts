import { beforeEach, describe, expect, it } from 'vitest';
import { Routes, type Route, type RouteHandler } from '../../../src/request/routes.js';

const handlers: Record<string, string> = { 'GET /users/:id': 'Users.find', 'ALL /any': 'Users.any' };
let routes: Routes;
let announced: Route[];
beforeEach(() => {
  routes = new Routes();
  const find = (method: string, pattern: string): RouteHandler | null => {
    const name = handlers[`${method} ${pattern}`];
    if (name === undefined) return null;
    return {
      name,
      skipped: false,
      slowMs: null,
    };
  };
  routes.findHandler = find;
  announced = [];
  routes.measure = (route) => void announced.push(route);
});

describe('a route that Nest has registered', () => {
  it('is made once, with its handler, when a request first reaches it', () => {
    const route = routes.findNestRoute('GET', '/users/:id');
    expect(route).toMatchObject({ method: 'GET', pattern: '/users/:id', handler: { name: 'Users.find' } });
    expect(routes.findNestRoute('GET', '/users/:id')).toBe(route);
    expect(announced).toEqual([route]);
  });

  it('is one for each method of `@All()`, and unknown methods share one', () => {
    const declared = routes.findNestRoute('ALL', '/any');
    const methods = ['GET', 'PUT', 'BREW', 'POUR'].map((method) => declared.forMethod(method));
    expect(methods.map(({ method }) => method)).toEqual(['GET', 'PUT', '_OTHER', '_OTHER']);
    expect(methods[2]).toBe(methods[3]);
  });

  it('is found where only the framework tells it: a HEAD by its GET, any method by `@All()`', () => {
    const found = [
      routes.findFrameworkRoute('GET', '/users/:id'),
      routes.findFrameworkRoute('HEAD', '/users/:id'),
      routes.findFrameworkRoute('PATCH', '/any'),
      routes.findFrameworkRoute('PATCH', '/users/:id'),
    ];
    expect(found.map((route) => [route?.method, route?.handler?.name])).toEqual([
      ['GET', 'Users.find'],
      ['HEAD', 'Users.find'],
      ['PATCH', 'Users.any'],
      ['PATCH', undefined],
    ]);
    expect(found[0]).toBe(routes.findNestRoute('GET', '/users/:id'));
  });
});

it('routes beside Nest’s are bounded, and take no room from Nest’s', () => {
  for (let i = 0; i < 300; i++) routes.findFrameworkRoute('GET', `/hostile-${i}`);
  expect(announced).toHaveLength(200);
  expect(routes.findFrameworkRoute('GET', '/hostile-0')?.pattern).toBe('/hostile-0');
  expect(routes.findFrameworkRoute('GET', '/hostile-299')).toBeNull();
  expect(routes.findFrameworkRoute('GET', '/users/:id')?.handler?.name).toBe('Users.find');
});
