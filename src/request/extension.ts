import { INQUIRER, type ModulesContainer } from '@nestjs/core';
import { Scope, type InjectionToken, type Provider } from '@nestjs/common';
import { decoratedMethods } from '../core/method-metadata.js';
import { list, optionError, value } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { Feature } from './feature.js';
import { findPrototype, listWrappers } from './prototypes.js';

/** Providers that join the module and are exported to the whole application: `PerfModule.forRoot({ extensions: [cache()] })`. Anybody can write one. */
export interface PerfExtension {
  readonly name: string;
  readonly providers: readonly Provider[];
}

const extension = value<PerfExtension>('an extension, as `cache()` makes one', (given) => {
  const candidate = given as Partial<PerfExtension> | null | undefined;
  return typeof candidate?.name === 'string' && candidate.name !== '' && Array.isArray(candidate.providers);
});
export const extensionsOption = list(extension, { default: [], what: 'a list of extensions' });

/** @throws PERF_ERR_OPTION for an extension that is listed twice */
export function refuseTwice(extensions: readonly PerfExtension[]): void {
  const names = extensions.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  const expected = 'a list in which each extension stands once';
  throw optionError('extensions', expected, extensions, `"${twice}" stands there twice.`);
}

/** Marks a provider of an extension whose {@link Feature} methods are called. */
export const FEATURE: unique symbol = Symbol.for('nestjs-perf:feature');

export const isFeature = (provided: unknown): provided is Feature =>
  typeof provided === 'object' && provided !== null && FEATURE in provided;

/** Metadata of a decorated method: the extensions without which its decorators would do nothing. */
const NEEDED_METADATA = 'perf:extension';

export interface NeededExtension {
  readonly name: string;
  /** `'@Cached()'` */
  readonly decorator: string;
  /** The option to add: `"extensions: [cache()]"`. */
  readonly add: string;
  /** The error where the extension is there, but lacks what the decorator names, such as an upstream. */
  readonly createUnknownError?: (where: string, extension: PerfExtension) => PerfError;
}

/** Tokens that extensions provide. The file that declares a token registers it here when it is loaded. */
const NEEDED_BY_TOKEN = new Map<InjectionToken, NeededExtension>();

/** Stops the boot of an application in which a class injects this token and no extension provides it. */
export function needProvider(token: InjectionToken, needed: NeededExtension): void {
  NEEDED_BY_TOKEN.set(token, needed);
}

/** Providers for the tokens that no given extension provides: whoever injects one stops the boot with the line to add. */
export function refusingProviders(extensions: readonly PerfExtension[]): Provider[] {
  const provided = new Set(extensions.flatMap(({ providers }) => providers.map(readToken)));
  const refused = [...NEEDED_BY_TOKEN].filter(([token]) => !provided.has(token));
  return refused.map(([provide, needed]) => ({
    provide,
    scope: Scope.TRANSIENT,
    inject: [INQUIRER],
    useFactory: (asking: object | null | undefined) => {
      throw missing(needed, asking?.constructor.name ?? 'a factory', extensions);
    },
  }));
}

export const readToken = (provider: Provider): InjectionToken =>
  typeof provider === 'function' ? provider : provider.provide;

/** Stops the boot of an application that has a class with this method, but not the extension. */
export function needExtension(needed: NeededExtension, prototype: object, method: string): void {
  const own = (Reflect.getOwnMetadata(NEEDED_METADATA, prototype, method) ?? []) as readonly NeededExtension[];
  Reflect.defineMetadata(NEEDED_METADATA, [...own, needed], prototype, method);
}

/** @throws PERF_ERR_EXTENSION with the method and the line to add */
export function refuseMissingExtensions(modules: ModulesContainer, extensions: readonly PerfExtension[]): void {
  const names = new Set(extensions.map(({ name }) => name));
  for (const wrapper of listWrappers(modules)) {
    const prototype = findPrototype(wrapper);
    if (prototype === null) continue;
    for (const [name, all] of decoratedMethods(NEEDED_METADATA, prototype)) {
      const needed = (all as readonly NeededExtension[]).find(({ name: extensionName }) => !names.has(extensionName));
      if (needed === undefined) continue;
      throw missing(needed, `${prototype.constructor.name}.${name}`, extensions);
    }
  }
}

function missing(
  { name, decorator, add, createUnknownError }: NeededExtension,
  where: string,
  extensions: readonly PerfExtension[],
): PerfError {
  const extension = extensions.find((given) => given.name === name);
  if (extension !== undefined && createUnknownError !== undefined) return createUnknownError(where, extension);
  return new PerfError(
    'PERF_ERR_EXTENSION',
    `\`${decorator}\` on "${where}" does nothing without its extension. Add it: PerfModule.forRoot({ ${add} }).`,
  );
}
