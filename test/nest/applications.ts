import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, expect } from 'vitest';
import { memorySink, settle } from '../../src/entries/testing.js';
import { PerfModule, type RequestRecord } from '../../src/index.js';
import { type Adapter, adapterOf, either } from '../fixtures/app.js';
import { call, type ClientRequest, type ClientResponse } from '../fixtures/http-client.js';

export const forms = ['bare', 'instrumented'] as const;
/** The same application without the module, and with it imported and its options left alone. */
export type Form = (typeof forms)[number];
/** Without the module one adapter shows in the short run what Nest itself does. */
export const chooseForms = (adapter: Adapter): readonly Form[] =>
  either('fastify').includes(adapter) ? forms : ['instrumented'];

export interface Application extends ModuleMetadata {
  nest?: NestApplicationOptions;
  adapter?: () => AbstractHttpAdapter;
  /** Of the root module. */
  configure?: (consumer: MiddlewareConsumer) => unknown;
  /** Like main.ts: before `init()`. */
  main?: (app: INestApplication) => unknown;
}

export interface RunningApplication {
  app: INestApplication;
  url: string;
  port: number;
  /** One exchange; the instrumented form must have recorded it once, with its status. */
  ask: Ask;
  /** Request records since the last time this was asked; null for the bare form. */
  newRecords: () => Promise<RequestRecord[] | null>;
  close: () => Promise<void>;
}

/** An application of either form that has not been initialised. */
export async function createApplication(form: Form, adapter: Adapter, application: Application) {
  const { nest = {}, adapter: ownAdapter, configure, main, ...metadata } = application;
  const sink = memorySink();
  const perf = form === 'instrumented' ? [PerfModule.forRoot({ sinks: [sink] })] : [];
  @Module({ ...metadata, imports: [...perf, ...(metadata.imports ?? [])] })
  class RootModule {
    configure(consumer: MiddlewareConsumer) {
      configure?.(consumer);
    }
  }
  const options = { logger: false as const, abortOnError: false, ...nest };
  const app = await NestFactory.create(RootModule, ownAdapter?.() ?? adapterOf(adapter), options);
  await main?.(app);
  let seen = 0;
  const newRecords = async (): Promise<RequestRecord[] | null> => {
    if (form === 'bare') return null;
    await settle(app);
    const records = sink.records.filter((record) => record.kind === 'request');
    const fresh = records.slice(seen);
    seen = records.length;
    // A record that overlaps a late loop waits for its verdict.
    return fresh.toSorted((a, b) => a.startedAt - b.startedAt);
  };
  return { app, newRecords };
}

/** Listening on a port of its own. */
export async function startApplication(
  form: Form,
  adapter: Adapter,
  application: Application,
): Promise<RunningApplication> {
  const { app, newRecords } = await createApplication(form, adapter, application);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const askOnce: Ask = async (path, request) => {
    await newRecords();
    const answer = await ask(url + path, request);
    const records = await newRecords();
    if (records !== null) expect(records).toMatchObject([{ status: answer.status, outcome: 'completed' }]);
    return answer;
  };
  return { app, url, port, ask: askOnce, newRecords, close: () => app.close() };
}

/** Far above what an answer takes: none at all is found before the test ends. */
const DEADLINE_MS = 20_000;

export interface Answer {
  status: number;
  /** Without `date`, and without `vary`, which has a suite of its own. */
  headers: ClientResponse['headers'];
  text: string;
}

export async function ask(url: string, request?: ClientRequest): Promise<Answer> {
  const { status, headers, text } = await call(url, { ...request, signal: AbortSignal.timeout(DEADLINE_MS) });
  const { date: _date, vary: _vary, ...rest } = headers;
  return { status, headers: rest, text };
}

export type Ask = (path: string, request?: ClientRequest) => Promise<Answer>;

export interface BothForms {
  /** Asks both forms, holds the answers to be alike, and gives the answer. */
  ask: Ask;
  /** The same, and gives the body alone, parsed. */
  json: (path: string, request?: ClientRequest) => Promise<unknown>;
  /** What `observe` finds must be alike; it is given one form after the other. */
  alike: <T>(observe: (running: RunningApplication, form: Form) => Promise<T>) => Promise<T>;
}

/** Both forms of an application, from the first test of a suite to its last. */
export function bothForms(adapter: Adapter, application: () => Application): BothForms {
  const running = {} as Record<Form, RunningApplication>;
  beforeAll(async () => {
    for (const form of forms) running[form] = await startApplication(form, adapter, application());
  });
  afterAll(async () => {
    for (const form of forms) {
      // A test that has failed may have left a connection open.
      (running[form]?.app.getHttpServer() as Server | undefined)?.closeAllConnections();
      await running[form]?.close();
    }
  });

  const alike: BothForms['alike'] = async (observe) => {
    const bare = await observe(running.bare, 'bare');
    const instrumented = await observe(running.instrumented, 'instrumented');
    expect(instrumented, 'the instrumented form beside the bare one').toEqual(bare);
    return bare;
  };
  const askBoth: Ask = (path, request) => alike(({ ask }) => ask(path, request));
  return { ask: askBoth, alike, json: async (path, request) => JSON.parse((await askBoth(path, request)).text) };
}

/** A request with a body of JSON. */
export function withJson(method: string, value: unknown, headers: Record<string, string> = {}): ClientRequest {
  return { method, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) };
}
