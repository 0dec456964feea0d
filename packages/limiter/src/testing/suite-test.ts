/** One test of a published suite, for any test runner: `run` throws if the promise is broken. */
export interface SuiteTest {
  readonly name: string
  run(): Promise<void>
}
