import { likeMethod, putOn } from '../core/stand-in.js';
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
    const undo = putOn(instance, methodName, likeMethod(stands, method));
    if (undo === null) throw misplaced(name, 'its provider is frozen, so that nothing can stand for the method.');
    this.undo.push(undo);
  }

  giveBack(): void {
    for (const undo of this.undo.splice(0).reverse()) undo();
  }
}
