import { relative } from 'node:path'

const mostNames = 40

/**
 * The last lines of a test run, since the end of a log is what is kept of it: files without a result, failed tests, and the
 * counts in the form that CI reads. `files` are those that should have a result; `root` is where their names begin.
 */
export function reportTests({ numPassedTests, numFailedTests, testResults }, { files = [], root, hasFailed }) {
  const nameOf = file => relative(root, file.name)
  const reported = new Set(testResults.map(nameOf))
  // a worker that ends in the middle of a file leaves tests that are still pending
  const unfinished = testResults.filter(file => file.assertionResults.some(({ status }) => status === 'pending'))
  const broken = testResults.filter(file => isFailed(file) && !file.assertionResults.some(isFailed))
  const lost = [...new Set([...files.filter(file => !reported.has(file)), ...unfinished.map(nameOf)])]
  const failures = [
    ...lost.map(file => `no result: ${file}`),
    ...broken.map(file => `failed outside its tests: ${nameOf(file)}`),
    ...testResults.flatMap(file =>
      file.assertionResults.filter(isFailed).map(({ fullName }) => `failed: ${nameOf(file)}: ${fullName}`),
    ),
  ]
  // an error outside every file fails the run too, though no list names it
  const failed = Math.max(numFailedTests + broken.length + lost.length, hasFailed ? 1 : 0)
  const lines = [
    ...failures.slice(0, mostNames),
    ...(failures.length > mostNames ? [`and ${failures.length - mostNames} more`] : []),
    `${numPassedTests} passed, ${failed} failed`,
  ]
  return { failed, lines }
}

const isFailed = ({ status }) => status === 'failed'
