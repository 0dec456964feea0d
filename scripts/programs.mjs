import { spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run } from './run.mjs'

const everywhere = name => ({ 'apt-get': name, dnf: name, yum: name, apk: name, pacman: name, brew: name })

/** The system programs that the tests start, and the package that brings each one. */
export const programs = [
  {
    name: 'redis-server',
    home: 'https://redis.io/downloads',
    packages: { 'apt-get': 'redis-server', dnf: 'redis', yum: 'redis', apk: 'redis', pacman: 'redis', brew: 'redis' },
  },
  {
    name: 'etcd',
    home: 'https://etcd.io/docs/latest/install',
    packages: { 'apt-get': 'etcd-server', dnf: 'etcd', yum: 'etcd', apk: 'etcd', pacman: 'etcd', brew: 'etcd' },
  },
  {
    // not every package manager has it: its test is left out without it
    name: 'luacheck',
    isOptional: true,
    home: 'https://github.com/lunarmodules/luacheck',
    packages: { 'apt-get': 'lua-check', pacman: 'luacheck', brew: 'luacheck' },
  },
  {
    name: 'wrk',
    home: 'https://github.com/wg/wrk',
    packages: everywhere('wrk'),
  },
  {
    name: 'curl',
    home: 'https://curl.se/download.html',
    packages: everywhere('curl'),
  },
  {
    name: 'h2load',
    home: 'https://nghttp2.org',
    packages: { ...everywhere('nghttp2'), 'apt-get': 'nghttp2-client' },
  },
  {
    // a module of the system's Python, which not every package manager has: its test is left out without it
    name: 'python3-grpcio',
    check: ['/usr/bin/python3', '-c', 'import grpc'],
    isOptional: true,
    home: 'https://grpc.io/docs/languages/python/quickstart',
    packages: {
      'apt-get': 'python3-grpcio',
      dnf: 'python3-grpcio',
      yum: 'python3-grpcio',
      apk: 'py3-grpcio',
      pacman: 'python-grpcio',
    },
  },
  {
    // clients of Redis, some packages of which come with the server
    name: 'redis-benchmark',
    home: 'https://redis.io/downloads',
    packages: { ...everywhere('redis'), 'apt-get': 'redis-tools' },
  },
  {
    // its test is left out without it
    name: 'python3-redis',
    check: ['/usr/bin/python3', '-c', 'import redis'],
    isOptional: true,
    home: 'https://redis.io/docs/latest/develop/clients/redis-py',
    packages: {
      'apt-get': 'python3-redis',
      dnf: 'python3-redis',
      yum: 'python3-redis',
      apk: 'py3-redis',
      pacman: 'python-redis',
    },
  },
  {
    name: 'nginx',
    home: 'https://nginx.org/en/download.html',
    packages: everywhere('nginx'),
  },
  {
    // some packages of nginx leave it out, or have it inside: its test is left out without it
    name: "nginx's stream module",
    check: ['/bin/sh', '-c', 'ls /usr/lib*/nginx/modules/ngx_stream_module.so'],
    isOptional: true,
    home: 'https://nginx.org/en/docs/stream/ngx_stream_core_module.html',
    packages: { 'apt-get': 'libnginx-mod-stream', dnf: 'nginx-mod-stream', apk: 'nginx-mod-stream' },
  },
  {
    name: 'caddy',
    home: 'https://caddyserver.com/docs/install',
    packages: everywhere('caddy'),
  },
  {
    name: 'haproxy',
    home: 'https://www.haproxy.org',
    packages: everywhere('haproxy'),
  },
  {
    name: 'git',
    home: 'https://git-scm.com/downloads',
    packages: everywhere('git'),
  },
  {
    name: 'python3',
    home: 'https://www.python.org/downloads',
    packages: { ...everywhere('python3'), pacman: 'python', brew: 'python' },
  },
  {
    name: 'openssl',
    home: 'https://openssl-library.org',
    packages: everywhere('openssl'),
  },
  {
    // checks the model of a fleet; not every package manager has it: its test is left out without it
    name: 'spin',
    isOptional: true,
    home: 'https://spinroot.com',
    packages: { 'apt-get': 'spin', brew: 'spin' },
  },
  {
    name: 'gcc',
    isOptional: true,
    home: 'https://gcc.gnu.org',
    packages: { ...everywhere('gcc'), 'apt-get': 'gcc' },
  },
  {
    name: 'promtool',
    home: 'https://prometheus.io/download',
    packages: {
      ...everywhere('prometheus'),
      dnf: 'golang-github-prometheus',
      yum: 'golang-github-prometheus',
    },
  },
  {
    name: 'chromium',
    home: 'https://www.chromium.org/getting-involved/download-chromium',
    packages: {
      'apt-get': 'chromium',
      dnf: 'chromium',
      yum: 'chromium',
      apk: 'chromium',
      pacman: 'chromium',
      brew: 'chromium',
    },
  },
  {
    // the same browser without a window: with it, the tests of the page need a third of the processor time
    name: 'chromium-headless-shell',
    isOptional: true,
    home: 'https://www.chromium.org/getting-involved/download-chromium',
    packages: { 'apt-get': 'chromium-headless-shell' },
  },
]

// Debian starts a service as it installs it, unless a policy-rc.d answers 101.
// An update that fails may still leave good lists, so the install is what decides.
const UPDATED_AND_WITHOUT_SERVICES = `
policy=$1; shift
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
"$@"
`

const managers = [
  {
    name: 'apt-get',
    args: ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120'],
    needsRoot: true,
    within: policyFile => ['/bin/sh', '-c', UPDATED_AND_WITHOUT_SERVICES, 'sh', policyFile],
  },
  { name: 'dnf', args: ['install', '-y'], needsRoot: true },
  { name: 'yum', args: ['install', '-y'], needsRoot: true },
  { name: 'apk', args: ['add', '--no-cache'], needsRoot: true },
  { name: 'pacman', args: ['-Sy', '--noconfirm', '--needed'], needsRoot: true },
  { name: 'brew', args: ['install'], needsRoot: false },
]

const NO_MANAGER = `no package manager found here knows it (looked for ${managers.map(({ name }) => name).join(', ')})`

/** Where a program is in a PATH, or undefined. */
export function findProgram(name, path) {
  const places = path.split(delimiter).filter(directory => directory !== '')
  return places.map(directory => join(directory, name)).find(isExecutable)
}

/** Installs the programs that are missing from the PATH, or says which they are and how to get them. */
export async function installPrograms({
  path,
  isRoot,
  wanted = programs,
  wantedBy = { name: 'the tests', command: 'npm test' },
  policyFile = '/usr/sbin/policy-rc.d',
}) {
  const failure = (...details) => new Error(failureText(wantedBy, ...details))
  const missing = wanted.filter(program => !isThere(program, path) && !isLeftOut(program, path))
  if (missing.length === 0) return

  const hasSudo = findProgram('sudo', path) !== undefined
  const known = managers.filter(
    ({ name }) => findProgram(name, path) && missing.every(program => program.packages[name]),
  )
  const manager = known.find(({ needsRoot }) => !needsRoot || isRoot || hasSudo)
  if (!manager) throw failure(missing, known[0], known[0] ? 'only root may install it' : NO_MANAGER)

  const install = async list => {
    console.log(`installing ${namesOf(list)} with ${manager.name}…`)
    const [command, ...args] = [
      ...(manager.needsRoot && !isRoot ? ['sudo', '-n'] : []),
      ...(manager.within?.(policyFile) ?? []),
      ...[manager.name, ...manager.args, ...packagesOf(list, manager)],
    ]
    return await run(command, args, { env: { ...process.env, PATH: path } })
  }
  const needed = missing.filter(({ isOptional }) => !isOptional)
  let { code, output } = await install(missing)
  // a package that this release of the system does not have must not keep out the others
  if (code !== 0 && needed.length > 0 && needed.length < missing.length) ({ code, output } = await install(needed))
  if (code !== 0 && needed.length > 0) {
    throw failure(needed, manager, `${manager.name} failed (${output.trim().split('\n').at(-1)})`)
  }
  const lost = needed.filter(program => !isThere(program, path))
  if (lost.length > 0) throw failure(lost, manager, `${manager.name} did not put it on the PATH`)
}

function failureText(wantedBy, missing, manager, reason) {
  const remedy = manager
    ? `run \`${manager.name} ${manager.args[0]} ${packagesOf(missing, manager).join(' ')}\`${manager.needsRoot ? ' as root' : ''}`
    : `get it from ${missing.map(({ home }) => home).join(' and ')} and put it on the PATH`
  return `Missing for ${wantedBy.name}: ${namesOf(missing)}, and ${reason}: ${remedy}, then run ${wantedBy.command} again.`
}

const namesOf = missing => missing.map(({ name }) => name).join(' and ')
const packagesOf = (missing, manager) => missing.map(program => program.packages[manager.name])

function isThere({ name, check }, path) {
  if (check === undefined) return findProgram(name, path) !== undefined
  const [command, ...args] = check
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function isLeftOut({ isOptional, packages }, path) {
  return isOptional === true && !managers.some(({ name }) => packages[name] && findProgram(name, path))
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
