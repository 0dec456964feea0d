import { spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { findProgram, installPrograms, programs } from '../scripts/programs.mjs'

const scripts = fileURLToPath(new URL('../scripts', import.meta.url))
let clone: string
let bin: string

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'diana-bootstrap-'))
  bin = join(clone, 'bin')
  cpSync(scripts, join(clone, 'scripts'), { recursive: true })
  writeFile('package-lock.json', '{"packages":{"node_modules/zod":{"version":"4.0.0"}}}')
  writeFile('test/runtimes/package.json', '{"devDependencies":{"deno":"2.0.0"}}')
  writeFile('test/runtimes/node_modules/.package-lock.json', '{"packages":{"node_modules/deno":{"version":"2.0.0"}}}')
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  rmSync(clone, { recursive: true })
})

function writeFile(path: string, text: string): string {
  const file = join(clone, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}

function writeProgram(name: string, shell: string): void {
  chmodSync(writeFile(`bin/${name}`, `#!/bin/sh\n${shell}\n`), 0o755)
}

function markPackagesInstalled(): void {
  writeFile('node_modules/.package-lock.json', readFileSync(join(clone, 'package-lock.json'), 'utf8'))
}

interface Ended {
  code: number | null
  signal: string | null
  stdout: string
  stderr: string
}

/** Runs node in the clone, with nothing but the fake programs on its PATH. */
function node(args: string[], onPrinted: (printed: string, pid: number) => void = () => {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: clone, env: { PATH: bin }, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', text => {
      stdout += text
      onPrinted(stdout, child.pid!)
    })
    child.stderr.on('data', text => {
      stderr += text
    })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

function expectOneSentence({ code, stderr }: Ended): void {
  expect(stderr).toMatch(/^[A-Z][^\n]*\.\n$/)
  expect(stderr).not.toContain('    at ')
  expect(code).toBe(1)
}

describe('the version of Node', () => {
  const pretend = (version: string) => [
    '--import',
    `data:text/javascript,Object.defineProperty(process, 'version', { value: '${version}' })`,
  ]

  test.each(['v12.22.12', 'v18.20.8', 'v20.9.0', 'v20.18.3'])('Node %s is refused with one sentence', async version => {
    for (const command of ['start', 'test']) {
      const ended = await node([...pretend(version), `scripts/${command}.mjs`])
      expectOneSentence(ended)
      expect(ended.stderr).toContain(`needs Node 20.19 or newer and this is Node ${version.slice(1)}:`)
      expect(ended.stdout).toBe('')
    }
  })

  test.each(['v20.19.0', 'v22.1.0', 'v26.0.0-nightly'])('Node %s is accepted', async version => {
    const ended = await node([...pretend(version), 'scripts/start.mjs'])
    expect(ended.stdout).toContain('installing packages')
  })
})

describe('npm packages', () => {
  test('npm run setup installs the runtimes of the tests in their own folder, and npm start does not', async () => {
    markPackagesInstalled()
    rmSync(join(clone, 'test/runtimes/node_modules'), { recursive: true })
    writeProgram('npm', 'echo "npm error code $(pwd)" >&2; exit 1')
    const ended = await node(['scripts/setup.mjs'])
    expectOneSentence(ended)
    expect(ended.stderr).toContain(`(${join(clone, 'test/runtimes')})`)
    expect((await node(['scripts/start.mjs'])).stdout).not.toContain('Deno')
  })

  test.each([
    ['echo "npm error code EAI_AGAIN" >&2; exit 1', '(EAI_AGAIN): check that this machine reaches the npm registry'],
    ['echo "npm error code EUSAGE" >&2; exit 1', '(EUSAGE): run `npm ci` in '],
    ['exit 9', '(exit code 9): run `npm ci` in '],
  ])('a failed npm install is reported in one sentence: %s', async (shell, sentence) => {
    writeProgram('npm', shell)
    for (const command of ['start', 'test']) {
      const ended = await node([`scripts/${command}.mjs`])
      expectOneSentence(ended)
      expect(ended.stderr).toContain(sentence)
    }
  })

  test('a missing npm is reported', async () => {
    const ended = await node(['scripts/start.mjs'])
    expectOneSentence(ended)
    expect(ended.stderr).toContain('Could not run npm (ENOENT)')
  })

  test('npm packages are installed again when the lock file changes, and only then', async () => {
    writeProgram('npm', 'echo "npm error code ASKED"; exit 1')
    markPackagesInstalled()
    expect((await node(['scripts/start.mjs'])).stdout).not.toContain('installing')

    for (const changed of ['{"packages":{"node_modules/zod":{"version":"4.0.1"}}}', 'cut off {']) {
      writeFile('package-lock.json', changed)
      expect((await node(['scripts/start.mjs'])).stderr).toContain('ASKED')
    }
  })

  test('an optional package of another system is not required', async () => {
    writeFile(
      'package-lock.json',
      '{"packages":{"":{"name":"diana"},"node_modules/a":{"version":"1.0.0","optional":true}}}',
    )
    writeFile('node_modules/.package-lock.json', '{"packages":{}}')
    expect((await node(['scripts/start.mjs'])).stdout).not.toContain('installing')
  })
})

describe('npm start', () => {
  const tsc = 'node_modules/typescript/bin/tsc'
  const vite = 'node_modules/vite/bin/vite.js'
  const main = 'packages/gateway/dist/cli/main.js'

  beforeEach(() => {
    markPackagesInstalled()
    writeFile(vite, '')
  })

  test('npm start hands the arguments to the gateway and passes its exit code on', async () => {
    writeFile(tsc, '')
    writeFile(main, 'console.log(process.argv.slice(1).join(" ")); process.exitCode = 7')
    const ended = await node(['scripts/start.mjs', '--port', '0'])
    expect(ended).toMatchObject({ code: 7, stderr: '' })
    expect(ended.stdout).toMatch(/^building…\n.*packages\/gateway\/dist\/cli\/main\.js start --port 0\n$/)
  })

  test('a failed build is reported in one sentence, and nothing is started', async () => {
    writeFile(tsc, 'console.log("a.ts(1,2): error TS2322: no.\\nb.ts(3,4): error TS2322: no."); process.exitCode = 2')
    writeFile(main, 'console.log("started")')
    const ended = await node(['scripts/start.mjs'])
    expectOneSentence(ended)
    expect(ended.stderr).toContain('(a.ts(1,2): error TS2322: no.): run `npm run build`')
    expect(ended.stdout).toBe('building…\n')
  })

  test('a failed build of the page is reported in one sentence, and nothing is started', async () => {
    writeFile(tsc, '')
    writeFile(vite, 'console.log("✗ Build failed\\nerror: app.tsx: no.\\n"); process.exitCode = 1')
    writeFile(main, 'console.log("started")')
    const ended = await node(['scripts/start.mjs'])
    expectOneSentence(ended)
    expect(ended.stderr).toContain('(error: app.tsx: no.): run `npm run build`')
    expect(ended.stdout).toBe('building…\n')
  })

  test('the page is built again when its sources change, and only then', async () => {
    writeFile(tsc, '')
    writeFile(main, '')
    writeFile(vite, 'process.exitCode = 1')
    const built = writeFile('packages/dashboard/dist/index.html', '')
    const source = writeFile('packages/dashboard/src/parts/chart.tsx', '')
    const future = Date.now() / 1000 + 60
    utimesSync(built, future, future)
    expect(await node(['scripts/start.mjs'])).toMatchObject({ code: 0, stderr: '' })
    utimesSync(source, future + 1, future + 1)
    expectOneSentence(await node(['scripts/start.mjs']))
  })

  test('a build without a gateway is reported in one sentence', async () => {
    writeFile(tsc, '')
    const ended = await node(['scripts/start.mjs'])
    expectOneSentence(ended)
    expect(ended.stderr).toContain('main.js')
  })
})

describe('npm test', () => {
  beforeEach(() => {
    markPackagesInstalled()
    for (const { name } of programs) writeProgram(name, '')
  })

  test('npm test runs lint, types and tests, hands on its arguments and ends with the counts', async () => {
    const results = { numPassedTests: 12, numFailedTests: 0, testResults: [] }
    writeProgram(
      'npm',
      `echo "npm $*"; for word; do case "$word" in --outputFile.json=*) echo '${JSON.stringify(results)}' > "\${word#*=}";; esac; done`,
    )
    const ended = await node(['scripts/test.mjs', 'packages/limiter'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout.match(/(?<=npm run --silent )\w+/g)).toEqual(['lint', 'types', 'unit'])
    expect(ended.stdout).toMatch(/unit -- .* packages\/limiter\n/)
    expect(ended.stdout).toMatch(/\nlint \d+\.\d s, types \d+\.\d s, tests \d+\.\d s: all well\n12 passed, 0 failed\n$/)
  })

  test('npm test counts a file that fails before its first test as a failure', async () => {
    const broken = { name: join(clone, 'test/broken.test.ts'), status: 'failed', assertionResults: [] }
    const results = { numPassedTests: 12, numFailedTests: 2, testResults: [broken] }
    writeProgram(
      'npm',
      `for word; do case "$word" in --outputFile.json=*) echo '${JSON.stringify(results)}' > "\${word#*=}"; exit 1;; esac; done`,
    )
    const ended = await node(['scripts/test.mjs'])
    expect(ended.code).toBe(1)
    expect(ended.stdout).toMatch(
      /: tests failed\nfailed outside its tests: test\/broken\.test\.ts\n12 passed, 3 failed\n$/,
    )
  })

  test('npm test names failed tests and files without a result in its last lines, and fails for a file that is lost', async () => {
    for (const name of ['whole', 'failing', 'cut', 'lost']) writeFile(`test/${name}.test.ts`, '')
    const file = (name: string, ...statuses: string[]) => ({
      name: join(clone, `test/${name}.test.ts`),
      status: statuses.includes('failed') ? 'failed' : 'passed',
      assertionResults: statuses.map((status, i) => ({ status, fullName: `a test ${i}` })),
    })
    const testResults = [file('whole', 'passed'), file('failing', 'passed', 'failed'), file('cut', 'passed', 'pending')]
    const results = { numPassedTests: 3, numFailedTests: 1, testResults }
    writeProgram(
      'npm',
      `for word; do case "$word" in --outputFile.json=*) echo '${JSON.stringify(results)}' > "\${word#*=}";; esac; done`,
    )
    const ended = await node(['scripts/test.mjs'])
    expect(ended.code).toBe(1)
    expect(ended.stdout.split('\n').slice(-5)).toEqual([
      'no result: test/lost.test.ts',
      'no result: test/cut.test.ts',
      'failed: test/failing.test.ts: a test 1',
      '3 passed, 3 failed',
      '',
    ])
  })

  test('npm test stops at the first step that fails, with its exit code', async () => {
    writeProgram('npm', 'echo "npm $*"; [ "$3" != types ] || exit 3')
    const ended = await node(['scripts/test.mjs'])
    expect(ended.code).toBe(3)
    expect(ended.stdout).toContain('types failed')
    expect(ended.stdout).not.toContain('unit')
  })

  test('a signal ends the step that runs, and then the command', async () => {
    writeProgram(
      'npm',
      `trap 'echo step ended; exit 0' TERM; echo ready; n=0; while [ $n -lt 2000000 ]; do n=$((n + 1)); done`,
    )
    const ended = await node(['scripts/test.mjs'], (printed, pid) => {
      if (printed.endsWith('ready\n')) process.kill(pid, 'SIGTERM')
    })
    expect(ended.signal).toBe('SIGTERM')
    expect(ended.stdout).toContain('step ended')
  })
})

describe('npm run setup', () => {
  test('npm run setup says what it does, and does nothing more if packages and programs are there', async () => {
    markPackagesInstalled()
    for (const { name } of programs) writeProgram(name, '')
    const ended = await node(['scripts/setup.mjs'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toBe('== setup: npm packages, and programs such as redis-server and nginx\n')
  })
})

describe('system programs', () => {
  const redis = {
    name: 'redis-server',
    home: 'https://redis.example',
    packages: { 'apt-get': 'redis-debian', brew: 'redis' },
  }
  const install = (isRoot: boolean) =>
    installPrograms({ path: bin, isRoot, wanted: [redis], policyFile: join(clone, 'policy-rc.d') })
  const log = () => readFileSync(join(clone, 'log'), 'utf8')
  const bringRedis = 'cp "$0" "${0%/*}/redis-server"'

  beforeEach(() => {
    vi.spyOn(console, 'log').mockReturnValue()
    mkdirSync(bin)
    for (const tool of ['rm', 'chmod', 'cp']) symlinkSync(findProgram(tool, process.env.PATH!)!, join(bin, tool))
  })

  test('system programs are found in any directory of the PATH, where they can be executed', () => {
    writeProgram('etcd', '')
    writeFile('bin/nginx', 'not executable')
    mkdirSync(join(bin, 'chromium'))
    const path = ['/nowhere', '', bin].join(delimiter)
    expect(findProgram('etcd', path)).toBe(join(bin, 'etcd'))
    expect(findProgram('nginx', path)).toBeUndefined()
    expect(findProgram('chromium', path)).toBeUndefined()
    expect(findProgram('etcd', '/nowhere')).toBeUndefined()
  })

  test('nothing is installed when nothing is missing', async () => {
    writeProgram('redis-server', '')
    writeProgram('apt-get', 'exit 1')
    await install(true)
  })

  test('without a package manager the name and the remedy are reported', async () => {
    await expect(install(true)).rejects.toThrow(
      /^Missing for the tests: redis-server, and no package manager .*: get it from https:\/\/redis\.example and put it on the PATH, then run npm test again\.$/,
    )
  })

  test('apt-get updates, asks nothing and starts no service', async () => {
    vi.stubEnv('DEBIAN_FRONTEND', 'dialog')
    writeProgram(
      'apt-get',
      `echo "$DEBIAN_FRONTEND $*" >> ${clone}/log; ${clone}/policy-rc.d; echo $? >> ${clone}/log; ${bringRedis}`,
    )
    await install(true)
    expect(log()).toBe(
      'noninteractive update\n101\n' +
        'noninteractive install -y --no-install-recommends -o DPkg::Lock::Timeout=120 redis-debian\n101\n',
    )
    expect(existsSync(join(clone, 'policy-rc.d'))).toBe(false)
  })

  test('an existing policy-rc.d of the machine is not changed', async () => {
    writeFile('policy-rc.d', 'its own')
    writeProgram('apt-get', bringRedis)
    await install(true)
    expect(readFileSync(join(clone, 'policy-rc.d'), 'utf8')).toBe('its own')
  })

  test('a failed update does not keep apt-get from installing', async () => {
    writeProgram('apt-get', `[ "$1" = install ] || exit 100; ${bringRedis}`)
    await install(true)
    expect(findProgram('redis-server', bin)).toBeDefined()
  })

  test('a failed install reports its reason and the remedy', async () => {
    writeProgram('apt-get', 'echo "E: Unable to locate package" >&2; exit 100')
    await expect(install(true)).rejects.toThrow(
      'Missing for the tests: redis-server, and apt-get failed (E: Unable to locate package): ' +
        'run `apt-get install redis-debian` as root, then run npm test again.',
    )
    expect(existsSync(join(clone, 'policy-rc.d'))).toBe(false)
  })

  test('an install that does not provide the program is a failure', async () => {
    writeProgram('apt-get', '')
    await expect(install(true)).rejects.toThrow('redis-server, and apt-get did not put it on the PATH')
  })

  test('setup without root uses sudo, which never asks for a password', async () => {
    writeProgram('sudo', `echo "$1 $2" >> ${clone}/log; shift; exec "$@"`)
    writeProgram('apt-get', bringRedis)
    await install(false)
    expect(log()).toBe('-n /bin/sh\n')
  })

  test('setup without root and sudo uses brew, or prints what root must do', async () => {
    writeProgram('apt-get', 'exit 1')
    await expect(install(false)).rejects.toThrow('only root may install it: run `apt-get install redis-debian` as root')

    writeProgram('brew', `echo "$*" >> ${clone}/log; ${bringRedis}`)
    await install(false)
    expect(log()).toBe('install redis\n')
  })
})
