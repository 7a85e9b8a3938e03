import { describe, expect, it } from 'vitest';
import { redactData } from '../../../src/core/redact.js';
import { redactUrl } from '../../../src/core/redact-url.js';
import { SecretNames } from '../../../src/core/secret-names.js';

const secrets = new SecretNames([]);

const LOGIN = 'mutation L($u: String!, $p: String!) { login(username: $u, password: $p) { id } }';

describe('a GraphQL request', () => {
  it('is without its variables where its operation names a secret, whatever they are called', () => {
    const body = { operationName: 'L', query: LOGIN, variables: { u: 'jane', p: 'hunter2' } };
    const hidden = { operationName: 'L', query: '[redacted]', variables: '[redacted]' };
    expect(redactData(body, secrets)?.data).toEqual(hidden);
    expect(redactData([body], secrets)?.data).toEqual([hidden]);
    const url = `/graphql?${new URLSearchParams({ variables: '{"p":"hunter2"}', query: LOGIN }).toString()}`;
    expect(redactUrl(url, { pattern: null }, secrets)).toBe('/graphql?variables=[redacted]&query=[redacted]');
  });

  it('has them otherwise', () => {
    const body = { query: 'query Q($id: ID!) { user(id: $id) { id } }', variables: { id: '7' } };
    expect(redactData(body, secrets)?.data).toEqual(body);
  });
});

describe('data', () => {
  it('redacts fields at any depth and leaves the rest', () => {
    const body = {
      name: 'Ada',
      login: { password: 'p', mfa: { otp: '123' } },
      items: [{ id: 1, apiKey: 'k' }],
      note: 'see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
    };
    expect(redactData(body, secrets)?.data).toEqual({
      name: 'Ada',
      login: { password: '[redacted]', mfa: '[redacted]' },
      items: [{ id: 1, apiKey: '[redacted]' }],
      note: '[redacted]',
    });
  });

  it('redacts what a pair of name and value says', () => {
    const body = {
      fields: [
        { name: 'password', value: 'p' },
        { field: 'plan', value: 'free' },
      ],
      entries: [
        ['token', 't'],
        ['page', 2],
      ],
      headers: ['Accept', '*/*', 'Authorization', 'hunter2', 'Cookie', 'b'],
      patch: [{ op: 'replace', path: '/user/password', value: 'hunter2' }],
      header: { header: 'X-Api-Key', value: 'hunter2' },
      change: { property: 'password', newValue: 'hunter2', version: 3 },
      question: { question: '2fa', answer: '493811' },
      talk: { title: 'a secret garden', room: 'B' },
      payment: { number: 4111111111111111, at: 1700000000000009 },
    };
    expect(redactData(body, secrets)?.data).toEqual({
      fields: [
        { name: 'password', value: '[redacted]' },
        { field: 'plan', value: 'free' },
      ],
      entries: [
        ['token', '[redacted]'],
        ['page', 2],
      ],
      headers: ['Accept', '*/*', 'Authorization', '[redacted]', 'Cookie', '[redacted]'],
      patch: [{ op: 'replace', path: '/user/password', value: '[redacted]' }],
      header: { header: 'X-Api-Key', value: '[redacted]' },
      change: { property: 'password', newValue: '[redacted]', version: 3 },
      question: { question: '2fa', answer: '[redacted]' },
      talk: { title: 'a secret garden', room: 'B' },
      payment: { number: '[redacted]', at: 1700000000000009 },
    });
  });

  it('passes on no name that is a text of its own: JSON that was sent as a form', () => {
    expect(redactData({ '{"password":"p"}': '' }, secrets)?.data).toEqual({ '[redacted]': '[redacted]' });
    expect(redactData({ 'password=p': 1, a: 1 }, secrets)?.data).toEqual({ '[redacted]': '[redacted]', a: 1 });
  });

  it('redacts JSON inside a string when it names a secret', () => {
    expect(redactData({ payload: '{"password":"p"}' }, secrets)?.data).toEqual({ payload: '[redacted]' });
  });

  it('runs none of the data’s own code', () => {
    let ran = 0;
    const body = {
      get x() {
        return (ran += 1);
      },
      toJSON: () => (ran += 1),
      date: new Date(0),
    };
    expect(redactData(body, secrets)?.data).toEqual({ x: '[redacted]', toJSON: '[redacted]', date: '[redacted]' });
    expect(ran).toBe(0);
  });

  it('gives up on what is too large, too deep or cyclic', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    expect(redactData(cyclic, secrets)).toBeNull();
    expect(
      redactData(
        Array.from({ length: 3_000 }, () => 1),
        secrets,
      ),
    ).toBeNull();
  });

  it('keeps a field called __proto__ a field', () => {
    const data = redactData(JSON.parse('{"__proto__":{"a":1}}'), secrets)?.data;
    expect(JSON.stringify(data)).toBe('{"__proto__":{"a":1}}');
  });
});
