import { existsSync, readFileSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPackages } from './packages.mjs'
import { installPrograms } from './programs.mjs'
import { root, runNpm } from './run.mjs'

const results = join(root, 'node_modules/.diana-test-results.json')

/** Installs what the tests need, then runs lint, types and tests, and stops at the first that fails. */
export default async function runTests() {
  // servers such as nginx live in directories that are often on root's PATH only
  process.env.PATH = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(delimiter)
  if (process.env.CI) process.env.NO_COLOR = '1'
  await installPackages()
  await installPrograms({ path: process.env.PATH, isRoot: process.getuid?.() === 0 })

  rmSync(results, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`]
  process.exitCode = await runSteps([
    { title: 'lint', args: ['lint'] },
    { title: 'types', args: ['types'] },
    { title: 'tests', args: ['unit', '--', ...reporters, ...process.argv.slice(2)] },
  ])
  if (existsSync(results)) console.log(countTests(JSON.parse(readFileSync(results, 'utf8'))))
}

async function runSteps(steps) {
  const took = []
  for (const { title, args } of steps) {
    console.log(`\n== ${title}`)
    const startedAt = performance.now()
    const { code } = await runNpm(['run', '--silent', ...args], { show: true })
    took.push(`${title} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
    if (code !== 0) {
      console.log(`\n${took.join(', ')}: ${title} failed`)
      return code
    }
  }
  console.log(`\n${took.join(', ')}: all well`)
  return 0
}

/** The last line, in the form that CI reads; a file that fails outside its tests counts as one failure. */
function countTests({ numPassedTests, numFailedTests, testResults }) {
  const fails = ({ status }) => status === 'failed'
  const brokenFiles = testResults.filter(file => fails(file) && !file.assertionResults.some(fails))
  const failed = numFailedTests + brokenFiles.length
  // an error outside every file fails the run too, though no list names it
  return `${numPassedTests} passed, ${process.exitCode === 0 ? failed : Math.max(failed, 1)} failed`
}
