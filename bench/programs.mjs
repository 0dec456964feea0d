// The system programs that topics start, beside those of the tests.

import { installPrograms, programs as ofTests } from '../scripts/programs.mjs'

const own = [
  {
    name: 'wrk',
    home: 'https://github.com/wg/wrk',
    packages: { 'apt-get': 'wrk', dnf: 'wrk', yum: 'wrk', apk: 'wrk', pacman: 'wrk', brew: 'wrk' },
  },
  {
    name: 'nginx',
    home: 'https://nginx.org/en/download.html',
    packages: {
      'apt-get': 'nginx-light',
      dnf: 'nginx',
      yum: 'nginx',
      apk: 'nginx',
      pacman: 'nginx',
      brew: 'nginx',
    },
  },
]

/** Where Debian keeps servers is not always in the PATH of a user. */
export const searchPath = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`

/** Installs what is missing of the programs named, or says how to get them. */
export async function installNamed(names) {
  const wanted = [...ofTests, ...own].filter(({ name }, i, all) => {
    return names.includes(name) && all.findIndex(other => other.name === name) === i
  })
  const isRoot = process.getuid?.() === 0
  const wantedBy = { name: 'the bench', command: 'npm run bench' }
  await installPrograms({ path: searchPath, isRoot, wanted, wantedBy })
}
