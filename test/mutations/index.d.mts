export interface Mutation {
  name: string;
  file: string;
  find: string;
  replace: string;
  tests: string[];
  only?: string;
}

export const mutations: readonly (Mutation & { table: string })[];
