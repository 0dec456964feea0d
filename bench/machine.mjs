import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { searchPath } from './programs.mjs'

/** What was measured on: the machine, Node, and the versions of the programs and the packages that a topic uses. */
export function describeMachine(programs, peers) {
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    programs: programs.map(versionOf),
    peers: peers.map(packageVersion),
  }
}

function packageVersion(name) {
  // a peer of Diana's own filters is installed with her, and there must be only one of it
  const places = ['node_modules', '../node_modules'].map(
    folder => new URL(`${folder}/${name}/package.json`, import.meta.url),
  )
  const file = places.find(existsSync)
  return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`
}

function versionOf(program) {
  const { flag, pattern } = versions[program]
  try {
    // wrk says its version and then that it was used wrongly; nginx says it as if it were an error
    const script = `${program} ${flag} 2>&1; true`
    const said = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8', env: { PATH: searchPath } })
    return `${program} ${said.match(pattern)?.[1] ?? 'of an unknown version'}`
  } catch {
    return `${program} of an unknown version`
  }
}

const versions = {
  'redis-server': { flag: '--version', pattern: /v=([\d.]+)/ },
  wrk: { flag: '-v', pattern: /wrk (\S+)/ },
  h2load: { flag: '--version', pattern: /nghttp2\/([\d.]+)/ },
  nginx: { flag: '-v', pattern: /nginx\/([\d.]+)/ },
}
