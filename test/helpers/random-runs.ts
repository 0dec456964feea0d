const factor = Number(process.env.DIANA_TEST_RUNS ?? 1)
if (!(factor > 0)) throw new Error(`DIANA_TEST_RUNS must be a number above 0, not ${process.env.DIANA_TEST_RUNS}`)

/** How often a random test runs: so many times in `npm run unit`, half in `npm test`, a quarter in `npm run check`, ten times in `npm run long -- tests`. */
export const randomRuns = (count: number): number => Math.ceil(count * factor)
