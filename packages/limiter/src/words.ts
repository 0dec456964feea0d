export { duration } from './common/duration.ts'
export {
  assertRegularFile,
  fileFault,
  readRegularFile,
  readRegularFileSync,
} from './common/regular-file.ts'
export { admit } from './filters/admit.ts'
export { appFilter, type Filter } from './filters/filter.ts'
export type { Framework } from './filters/frameworks/framework.ts'
export { httpFramework } from './filters/frameworks/http.ts'
export { alternativeNames, verifiedCertificate } from './http/client-certificate.ts'
export { hostName } from './http/host-name.ts'
export { canonicalAddress } from './http/ip-address.ts'
export { countedPath } from './http/path.ts'
export { hasReadings, readingsOf } from './http/path-readings.ts'
export { markUnknownEnd } from './http/unknown-end.ts'
export { assertRules } from './reload/assert-rules.ts'
export { canonicalHost } from './rules/match/condition.ts'
export { headerFault, hostFault, methodFault } from './rules/match/pattern.ts'
export { listOf, textOf } from './rules/schema/shape.ts'
export { suggest } from './rules/suggest.ts'
