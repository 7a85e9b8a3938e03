import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { storedRequest } from '../core/request-state.js';
import { bringHandlerInterceptor, bringHandlerInterceptors } from '../http/handler.interceptor.js';
import type { AroundFactory } from '../http/handlers.js';
import { stateOf } from '../http/lifecycle.js';
import { type ExperimentEngine, EXPERIMENTS } from './experiment-engine.js';

const EXPERIMENT_METADATA = 'perf:experiment';

/**
 * Puts a handler, or every handler of a controller, into the experiment behind a gate: the variant is decided before the
 * handler runs, after guards, and lands on the request's record. Needs no context store.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export function Experiment(gate: string): MethodDecorator & ClassDecorator {
  requireName(gate, '@Experiment()');
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const place = (descriptor?.value ?? target) as object;
    Reflect.defineMetadata(EXPERIMENT_METADATA, [...gatesOf(place), gate], place);
    if (descriptor === undefined) bringHandlerInterceptors(target as Type);
    else bringHandlerInterceptor(place);
  };
}

/**
 * A handler's parameter: `'on'` or `'off'`, the variant of the gate for this request.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export const Variant = (gate: string): ParameterDecorator => {
  requireName(gate, '@Variant()');
  return variantOf(gate);
};

const variantOf = createParamDecorator((gate: string, context: ExecutionContext): 'on' | 'off' => {
  const state = stateOf(context.switchToHttp().getRequest()) ?? storedRequest() ?? null;
  return state !== null && EXPERIMENTS.get(state.owner)?.isOn(state, gate) === true ? 'on' : 'off';
});

/** Evaluates the gates of decorated handlers before they run. */
export function aroundExperiments(engine: ExperimentEngine): AroundFactory {
  return ({ controller, method }) => {
    const gates = [...gatesOf(controller), ...gatesOf(method)];
    if (gates.length === 0) return null;
    return (state, _request, proceed) => {
      if (state !== null) for (const gate of gates) engine.isOn(state, gate);
      return proceed();
    };
  };
}

const gatesOf = (place: object): readonly string[] =>
  (Reflect.getMetadata(EXPERIMENT_METADATA, place) as readonly string[] | undefined) ?? [];

function requireName(gate: unknown, decorator: string): void {
  if (typeof gate === 'string' && gate !== '') return;
  throw new PerfError('PERF_ERR_DECORATOR', `${decorator} must be given the name of a gate, got ${describe(gate)}.`);
}
