import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Sorts the test files into the groups of vitest.config.ts. A file that measures is named here; all others are sorted by the words in
// their text, so that a new test needs no entry.

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

/** Words of tests that start servers, processes or limiters. */
const starting = ["from '@test/", '/helpers/', 'listen(', 'createLimiter', 'child_process', 'worker_threads']
/** Helpers that start nothing. */
const quietHelpers = /'@test\/(?:random-runs|cpu-time)'/g
/** Words of tests that replace modules, or notice what other files in their process do. */
const replacing = [
  ...['vi.mock(', 'vi.doMock(', 'vi.resetModules(', 'vi.stubGlobal(', '/config-center', 'syncBuiltin'],
  ...["on('warning'", "once(process, 'warning'", 'emitWarning', 'process.emit(', 'process.exit(', 'inspector'],
]

const uses = (file: string, words: readonly string[]): boolean => words.some(word => textOf(file).includes(word))
const tests = [...['limiter', 'gateway', 'dashboard'].map(name => `packages/${name}/src`), 'test'].flatMap(testsIn)
const notReplacing = tests.filter(file => !uses(file, replacing))

/** Tests of functions and classes, which stand beside their source. */
export const pure: readonly string[] = notReplacing.filter(
  file => file.startsWith('packages/') && !uses(file, starting),
)
/** Tests of servers and programs: files of a worker share the modules, which take a second to import, and the timers. */
export const shared: readonly string[] = notReplacing.filter(
  file => !pure.includes(file) && !uses(file, ['vi.useFakeTimers(']),
)

/**
 * Files with modules of their own first: a worker of `shared` goes on with the next file of the queue only if that is one of `shared`,
 * too; otherwise it ends, and the next one imports all modules again. Within a group vitest begins with the files that took longest in
 * the last run, or are the largest.
 */
export class SharedLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isShared = ({ project }: TestSpecification) => Number(project.name === 'shared')
    return (await super.sort(files)).toSorted((one, two) => isShared(one) - isShared(two))
  }
}

function testsIn(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter(file => file.endsWith('.test.ts')).map(file => `${folder}/${file}`)
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8').replace(quietHelpers, '')
}
