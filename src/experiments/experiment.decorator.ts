import { createParamDecorator, type Type } from '@nestjs/common';
import { decorateMethods, requireMethod, wrapMethod } from '../request/decorated-method.js';
import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { storedRequest, type RequestState } from '../request/request-state.js';
import { requireRoutes } from '../request/handlers.js';

/**
 * Puts a handler, or every handler of a controller, into the experiment behind a gate: the variant is decided before the
 * handler runs, after guards and pipes, and is written on the request's record.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export function Experiment(gate: string): MethodDecorator & ClassDecorator {
  requireName(gate, '@Experiment()');
  const decideGate = (descriptor: PropertyDescriptor): void =>
    wrapMethod(descriptor, (method) => ({
      wrapper(this: unknown, ...parameters: unknown[]): unknown {
        const decided = isOn(storedRequest(), gate);
        if (typeof decided === 'boolean') return method.apply(this, parameters);
        return decided.then(() => method.apply(this, parameters));
      },
    }));
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (key !== undefined) decideGate(requireMethod('@Experiment()', target, key, descriptor));
    else decorateMethods(target as Type, requireRoutes('@Experiment()', target as Type), decideGate);
  };
}

/**
 * A handler's parameter: `'on'` or `'off'`, the variant of the gate for this request.
 * @throws PERF_ERR_DECORATOR when the gate has no name
 */
export const Variant = (gate: string): ParameterDecorator => {
  requireName(gate, '@Variant()');
  return readVariant(gate);
};

const readVariant = createParamDecorator((gate: string) => {
  const decided = isOn(storedRequest(), gate);
  // Nest awaits what a parameter's decorator returns.
  return typeof decided === 'boolean' ? nameVariant(decided) : decided.then(nameVariant);
});

const nameVariant = (on: boolean): 'on' | 'off' => (on ? 'on' : 'off');

/** A promise where the gate client evaluates asynchronously. */
function isOn(state: RequestState | undefined, gate: string): boolean | Promise<boolean> {
  const experiments = state?.owner.experiments ?? null;
  if (state === undefined || experiments === null) return false;
  const ready = experiments.prepare(state, gate);
  return ready === null ? experiments.isOn(state, gate) : ready.then(() => experiments.isOn(state, gate));
}

function requireName(gate: unknown, decorator: string): void {
  if (typeof gate === 'string' && gate !== '') return;
  throw new PerfError('PERF_ERR_DECORATOR', `${decorator} must be given the name of a gate, got ${describe(gate)}.`);
}
