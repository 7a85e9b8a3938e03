import { ROUTE_ARGS_METADATA } from './nest-metadata.js';

/** There `@Req()` writes its parameter's index: `RouteParamtypes.REQUEST` is 0. */
const keyOf = (index: number): string => `0:${index}`;

export interface RequestParameter {
  readonly index: number;
  /** Not the user's own `@Req()`: the handler must not see it. */
  readonly added: boolean;
}

type Parameters = Readonly<Record<string, { readonly index: number }>>;
interface Addition {
  readonly index: number;
  /** The class's own metadata before; undefined where it was inherited or absent. */
  readonly before: unknown;
  users: number;
}
/** What stands on classes at this moment, while applications register routes: several may at once. */
const additions = new WeakMap<object, Map<string, Addition>>();

const additionOn = (host: object, methodName: string): Addition | undefined => additions.get(host)?.get(methodName);

/** Where handlers get the request: the user's own `@Req()`, else one that stands on the class for a moment. */
export class RequestParameters {
  private readonly added: { host: object; methodName: string }[] = [];

  of(controller: object, methodName: string): RequestParameter {
    const host = hostOf(controller, methodName);
    const present = additionOn(host, methodName);
    if (present !== undefined) {
      present.users += 1;
      this.added.push({ host, methodName });
      return { index: present.index, added: true };
    }
    const parameters = usersParameters(host, methodName);
    let index = 0;
    for (const [key, parameter] of Object.entries(parameters)) {
      if (key === keyOf(parameter.index)) return { index: parameter.index, added: false };
      index = Math.max(index, parameter.index + 1);
    }
    this.add(host, methodName, parameters, index);
    return { index, added: true };
  }

  giveBack(): void {
    for (const { host, methodName } of this.added.splice(0).reverse()) {
      const addition = additionOn(host, methodName)!;
      addition.users -= 1;
      if (addition.users > 0) continue;
      additions.get(host)!.delete(methodName);
      if (addition.before === undefined) Reflect.deleteMetadata(ROUTE_ARGS_METADATA, host, methodName);
      else Reflect.defineMetadata(ROUTE_ARGS_METADATA, addition.before, host, methodName);
    }
  }

  private add(host: object, methodName: string, parameters: Parameters, index: number): void {
    const before: unknown = Reflect.getOwnMetadata(ROUTE_ARGS_METADATA, host, methodName);
    const request = { index, data: undefined, pipes: [] };
    Reflect.defineMetadata(ROUTE_ARGS_METADATA, { ...parameters, [keyOf(index)]: request }, host, methodName);
    const methods = additions.get(host) ?? new Map<string, Addition>();
    additions.set(host, methods.set(methodName, { index, before, users: 1 }));
    this.added.push({ host, methodName });
  }
}

/** Where Nest reads the parameters of a method: the class that declared it, also where a mixin copied it. */
function hostOf(controller: object, methodName: string): object {
  type Class = { readonly prototype?: Record<string, unknown> };
  const { prototype } = controller as Class;
  const declaring = prototype?.['constructor'] as Class | undefined;
  if (typeof declaring !== 'function') return controller;
  return (declaring as Class).prototype?.[methodName] === prototype?.[methodName] ? declaring : controller;
}

/** Without what was added to a base class a moment ago. */
function usersParameters(host: object, methodName: string): Parameters {
  for (let at: object | null = host; at !== null; at = Reflect.getPrototypeOf(at)) {
    const own = Reflect.getOwnMetadata(ROUTE_ARGS_METADATA, at, methodName) as Parameters | undefined;
    if (own === undefined) continue;
    const addition = additionOn(at, methodName);
    if (addition === undefined) return own;
    if (addition.before !== undefined) return addition.before as Parameters;
  }
  return {};
}
