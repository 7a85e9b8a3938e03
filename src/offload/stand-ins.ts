import { misplaced } from './offload.errors.js';
import type { OffloadedMethod } from './offloaded-methods.js';

/** A method as it is called. */
export type Call = (parameters: unknown[]) => Promise<unknown>;

/** The functions that stand for decorated methods on their instances, until the application closes. */
export class StandIns {
  private readonly undo: (() => void)[] = [];

  /** `offload` gets the arguments, and how the method runs here. */
  put(
    { name, methodName, instance }: OffloadedMethod,
    offload: (parameters: unknown[], here: Call) => Promise<unknown>,
  ): void {
    const method = instance[methodName] as (...parameters: unknown[]) => Promise<unknown>;
    const here: Call = async (parameters) => method.apply(instance, parameters);
    const stands = async (...parameters: unknown[]): Promise<unknown> => offload(parameters, here);
    // Metadata of other decorators is the method's own.
    Object.setPrototypeOf(stands, method);
    Object.defineProperty(stands, 'name', { value: methodName, configurable: true });
    const before = Object.getOwnPropertyDescriptor(instance, methodName);
    const property = { value: stands, configurable: true, writable: true, enumerable: before?.enumerable ?? false };
    if (!Reflect.defineProperty(instance, methodName, property)) {
      throw misplaced(name, 'its provider is frozen, so that nothing can stand for the method.');
    }
    this.undo.push(() => {
      // Something else has been put there meanwhile: it stays.
      if (instance[methodName] !== stands) return;
      if (before === undefined) Reflect.deleteProperty(instance, methodName);
      else Object.defineProperty(instance, methodName, before);
    });
  }

  giveBack(): void {
    for (const undo of this.undo.splice(0).reverse()) undo();
  }
}
