import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Sorts the test files into the groups of vitest.config.ts: files with little work share a process, files that measure run alone.

const root = fileURLToPath(new URL('..', import.meta.url))

/** Tests that keep the processors busy while they measure time or memory: nothing else runs beside them. */
export const alone = [
  'packages/limiter/src/decision/allocations.test.ts',
  'packages/limiter/src/pacing/job-costs.test.ts',
  'packages/limiter/src/stores/memory/memory-store.test.ts',
  'test/{accuracy,chaos}/*.test.ts',
  'test/gateway/hostile/large-transfers.test.ts',
]

/** Tests that measure time and mostly wait: five of them run side by side, and nothing else. */
export const timed = [
  'packages/limiter/src/pacing/shared-pace*.test.ts',
  'packages/limiter/src/reload/vanished-file.test.ts',
  'packages/limiter/src/stores/failover/{deadline,failover-store,late-answers}.test.ts',
  'packages/limiter/src/stores/redis/connection/silence.test.ts',
  'test/limiter/{flapping,lost-counts,outages}.test.ts',
  'test/gateway/hostile/slow-callers.test.ts',
  'test/gateway/http2/hostile.test.ts',
]

/** Matches the text of tests that start processes or servers. */
const startsMore = /child_process|worker_threads|\/helpers\/|@test\/(?!random-runs|cpu-time)|listen\(|createLimiter/
/** Matches the text of tests that need modules of their own, such as those of warnings that are printed once. */
const ownModules =
  /vi\.(mock|doMock|resetModules|stubGlobal)|(on|off|once)\(\w*,? ?'warning'|emitWarning|process\.(emit|exit)\b|syncBuiltin|inspector|config-center/
/** Matches the text of tests that stop the timers, which servers of other files may still use. */
const ownTimers = /vi\.useFakeTimers/

const ofPackages = ['limiter', 'gateway', 'dashboard'].flatMap(name => testsIn(`packages/${name}/src`))
const withoutOwnModules = (file: string) => !ownModules.test(textOf(file))

/** Tests of functions and classes. */
export const pure: readonly string[] = ofPackages.filter(
  file => withoutOwnModules(file) && !startsMore.test(textOf(file)),
)
/** Tests of servers and programs: files of a worker share the modules, which take a second to import. */
export const shared: readonly string[] = [
  ...ofPackages.filter(file => startsMore.test(textOf(file))),
  ...testsIn('test'),
].filter(file => withoutOwnModules(file) && !ownTimers.test(textOf(file)))

/** The longest of those that run side by side begin first, so that none of them is left alone at the end. */
const longest = [
  'test/gateway/lifecycle/ending',
  'test/gateway/lifecycle/workers',
  'test/gateway/admin',
  'test/browser/dashboard',
  'test/fuzz/fuzz',
  'test/gateway/lifecycle/takeover',
  'test/browser/accessibility-and-size',
  'test/browser/stores-and-config-centers',
  'test/gateway/lifecycle/live-rules',
  'test/restarts/restarts',
  'test/consumers',
  'test/packages',
  'packages/limiter/src/filters/filters',
  'packages/limiter/src/stores/failover/fleet-scenes',
  'test/limiter/start',
  'test/cli',
  'test/simulate/overload/overload',
  'test/gateway/upstreams/upstreams',
  'test/clients/clients',
  'test/behaviors/behaviors',
  'test/browser/rule-form',
  'test/gateway/telemetry/telemetry-process',
  'test/gateway/http2/services',
  'test/browser/time-ranges',
  'test/browser/operator',
  'test/gateway/lifecycle/admin-state',
  'test/limiter/redis/spread',
].map(name => join(root, `${name}.test.ts`))

/**
 * Files with modules of their own first, then the longest. A worker of `shared` goes on with the next file of the queue only if that
 * is one of `shared`, too; otherwise it ends, and the next one imports all modules again.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = longest.indexOf(moduleId)
      return (project.name === 'shared' ? longest.length + 1 : 0) + (at < 0 ? longest.length : at)
    }
    return (await super.sort(files)).toSorted((one, two) => place(one) - place(two))
  }
}

function testsIn(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter(file => file.endsWith('.test.ts')).map(file => `${folder}/${file}`)
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
