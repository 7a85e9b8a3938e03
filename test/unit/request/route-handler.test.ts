import { Mutation, Query, ResolveField, ResolveReference, Subscription } from '@nestjs/graphql';
import { SubscribeMessage } from '@nestjs/websockets';
import { expect, it } from 'vitest';
import { isTakenFromClass } from '../../../src/request/route-handler.js';

it.each<[string, MethodDecorator]>([
  ['@SubscribeMessage()', SubscribeMessage('total')],
  ['@Query()', Query(() => String)],
  ['@Mutation()', Mutation(() => String)],
  ['@Subscription()', Subscription(() => String)],
  ['@ResolveField()', ResolveField(() => String)],
  ['@ResolveReference()', ResolveReference()],
])('a method with %s is one that Nest takes from its class', (_name, decorator) => {
  class Totals {
    @decorator
    async total() {}
    async plain() {}
  }
  const { total, plain } = Totals.prototype;
  expect([isTakenFromClass(total), isTakenFromClass(plain)]).toEqual([true, false]);
});
