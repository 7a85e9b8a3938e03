import { types } from 'node:util';

/** State found by a method's `this`. Behind a tracer's `Proxy` that is another object: it gets a hidden property through the proxy. */
export class ByInstance<State extends object> {
  private readonly states = new WeakMap<object, State>();
  private readonly behindProxy = Symbol('perf:instance');

  get(instance: unknown): State | undefined {
    if (typeof instance !== 'object' || instance === null) return undefined;
    const state = this.states.get(instance);
    if (state !== undefined || !Object.hasOwn(instance, this.behindProxy)) return state;
    return (instance as { [key: symbol]: State })[this.behindProxy];
  }

  set(instance: object, state: State): void {
    this.states.set(instance, state);
    if (types.isProxy(instance))
      Reflect.defineProperty(instance, this.behindProxy, { value: state, configurable: true });
  }

  delete(instance: object): void {
    this.states.delete(instance);
    if (types.isProxy(instance)) Reflect.deleteProperty(instance, this.behindProxy);
  }
}
