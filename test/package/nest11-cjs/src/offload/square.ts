export default (n: number): number => n * n;
