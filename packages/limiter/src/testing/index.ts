export { type AlgorithmSuiteOptions, algorithmSuite } from './algorithms/suite.ts'
export { type DimensionSuiteOptions, dimensionSuite } from './dimensions/suite.ts'
export type { AnyRateLimitOptions } from './filters/scene.ts'
export { FilterService } from './filters/service.ts'
export { type FilterSuiteOptions, filterSuite, type ServerUnderTest } from './filters/suite.ts'
export { type RefuseOptions, refuseAll, resetAll } from './refuse.ts'
export { type SourceSuiteOptions, type SourceUnderTest, sourceSuite } from './sources/suite.ts'
export { type StoreSuiteOptions, type StoreUnderTest, storeSuite } from './stores/suite.ts'
export type { SuiteTest } from './suite-test.ts'
export { type TestClock, testClock } from './time.ts'
export type { TimelineRule } from './timeline.ts'
export {
  type Outcome,
  type Row,
  runTimeline,
  type Timeline,
  type TimelineAnswer,
  type TimelineDecider,
} from './timeline.ts'
export { timelines } from './timelines.ts'
