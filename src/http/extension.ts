import type { InjectionToken } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { decoratedMethods } from '../core/method-metadata.js';
import { list, optionError, value } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { askedInVain } from './dependencies.js';
import type { Feature, FeatureHost } from './feature.js';
import { prototypeOf, wrappersOf } from './prototypes.js';

/** A feature that an application adds: `PerfModule.forRoot({ extensions: [cache()] })`. Entries of this package make them. */
export interface PerfExtension {
  /** One of a name in an application. */
  readonly name: string;
  /** Called once an application, also with `enabled: false`. */
  create(host: never): object;
}

export interface Extension extends PerfExtension {
  /** It looks at requests, also where no feature does. */
  readonly observesRequests?: true;
  /** What it puts in a method's place stands beneath what others put there, wherever it stands in the list. */
  readonly innermost?: true;
  create(host: FeatureHost): Feature;
}

const extension = value<PerfExtension>('an extension, as `cache()` makes one', (given) => {
  const candidate = given as Partial<PerfExtension> | null | undefined;
  return typeof candidate?.name === 'string' && typeof candidate.create === 'function';
});
export const extensionsOption = list(extension, { default: [], what: 'a list of extensions' });

/** @throws PERF_ERR_OPTION for one that stands there twice */
export function refuseTwice(extensions: readonly PerfExtension[]): void {
  const names = extensions.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  const expected = 'a list in which each extension stands once';
  throw optionError('extensions', expected, extensions, `"${twice}" stands there twice.`);
}

/** On the name of a method: the extensions without which its decorators would do nothing. */
const NEEDED_METADATA = 'perf:extension';

export interface NeededExtension {
  readonly name: string;
  /** `'@Cached()'` */
  readonly decorator: string;
  /** What to write: `"extensions: [cache()]"`. */
  readonly add: string;
}

/** What classes inject of an extension. */
export interface ExtensionService {
  readonly token: InjectionToken;
  /** Undefined: this extension does not have it. */
  readonly of: (feature: Feature) => object | undefined;
  readonly needed: NeededExtension;
}

/** Of every extension whose entry is loaded: a factory makes the options after Nest has read what the module provides. */
const SERVICES = new Map<InjectionToken, ExtensionService>();
let offer: (service: ExtensionService) => void = () => {};

export function offerService(service: ExtensionService): void {
  if (SERVICES.has(service.token)) return;
  SERVICES.set(service.token, service);
  offer(service);
}

/** `provide` hears of each, those before included. */
export function provideServices(provide: (service: ExtensionService) => void): void {
  for (const service of SERVICES.values()) provide(service);
  offer = provide;
}

/** Lets the boot stop when an application has a class whose prototype has this method, and not the extension. */
export function needExtension(needed: NeededExtension, prototype: object, method: string): void {
  const own = (Reflect.getOwnMetadata(NEEDED_METADATA, prototype, method) ?? []) as readonly NeededExtension[];
  Reflect.defineMetadata(NEEDED_METADATA, [...own, needed], prototype, method);
}

/** @throws PERF_ERR_EXTENSION with the method and the line to add */
export function refuseMissingExtensions(modules: ModulesContainer, names: ReadonlySet<string>): void {
  const refuse = (all: unknown, name: string): void => {
    const needed = (all as readonly NeededExtension[]).find(({ name: extensionName }) => !names.has(extensionName));
    if (needed === undefined) return;
    throw new PerfError(
      'PERF_ERR_EXTENSION',
      `\`${needed.decorator}\` on "${name}" does nothing without its extension. ` +
        `Add it: PerfModule.forRoot({ ${needed.add} }).`,
    );
  };
  for (const { token, by } of askedInVain(SERVICES, modules)) refuse([SERVICES.get(token)!.needed], by);
  for (const wrapper of wrappersOf(modules)) {
    const prototype = prototypeOf(wrapper);
    if (prototype === null) continue;
    for (const [name, all] of decoratedMethods(NEEDED_METADATA, prototype)) {
      refuse(all, `${prototype.constructor.name}.${name}`);
    }
  }
}
