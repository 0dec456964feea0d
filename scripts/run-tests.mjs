import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import install from './install.mjs'
import { reportTests } from './report-tests.mjs'
import { root, runNpm } from './run.mjs'

const results = join(root, 'node_modules/.diana-test-results.json')

/** Installs what the tests need, then runs lint, types and tests, and stops at the first that fails. */
export default async function runTests() {
  if (process.env.CI) process.env.NO_COLOR = '1'
  process.env.DIANA_TEST_RUNS ??= '0.5'
  await install()
  rmSync(results, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`]
  const chosen = process.argv.slice(2)
  process.exitCode = await runSteps([
    { title: 'lint', args: ['lint'] },
    { title: 'types', args: ['types'] },
    { title: 'tests', args: ['unit', '--', ...reporters, ...chosen] },
  ])
  if (!existsSync(results)) return
  const files = chosen.length === 0 ? testFiles() : []
  const hasFailed = process.exitCode !== 0
  const { lines, failed } = reportTests(JSON.parse(readFileSync(results, 'utf8')), { files, root, hasFailed })
  console.log(lines.join('\n'))
  // a file that is lost without an error fails the run too
  if (failed > 0) process.exitCode ||= 1
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

/** The test files of the repository, as vitest.config.ts finds them. */
function testFiles() {
  const packages = existsSync(join(root, 'packages')) ? readdirSync(join(root, 'packages')) : []
  return [...packages.map(name => `packages/${name}/src`), 'test']
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder => readdirSync(join(root, folder), { recursive: true }).map(file => `${folder}/${file}`))
    .filter(file => file.endsWith('.test.ts') && !file.includes('node_modules'))
}
