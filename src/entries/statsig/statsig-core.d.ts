// `@statsig/statsig-node-core` is an optional peer with a native binary per platform: only this of it is used.
declare module '@statsig/statsig-node-core' {
  export const StatsigUser: new (fields: { userID: string; customIDs?: Readonly<Record<string, string>> }) => object;
}
