import type { Type } from '@nestjs/common';
import type { RequestState } from '../core/request-state.js';

/** Runs around a handler, after guards and pipes. `state` is null when the request is not observed. */
export type Around = (state: RequestState | null, request: unknown, proceed: () => unknown) => unknown;

/** What stands around the handlers of one application's request-scoped controllers. */
export class RequestScopedArounds {
  private readonly byController = new Map<Type, Map<string, readonly Around[]>>();

  set(controller: Type, methodName: string, arounds: readonly Around[]): void {
    const methods = this.byController.get(controller) ?? new Map<string, readonly Around[]>();
    this.byController.set(controller, methods.set(methodName, arounds));
  }

  get(controller: Type, methodName: string): readonly Around[] {
    return this.byController.get(controller)?.get(methodName) ?? [];
  }
}
