import { types } from 'node:util';

/**
 * State of a provider, found by the `this` of its methods. Nest may have a tracer's `Proxy` of the provider, while `this` is the
 * object behind it: a hidden property, which the proxy passes on to that object, finds the state there.
 */
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
