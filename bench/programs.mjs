// The system programs that topics start, beside those of the tests.

import { installPrograms, programs as ofTests } from '../scripts/programs.mjs'

const own = [
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
  const wanted = [...ofTests, ...own].filter(({ name }) => names.includes(name))
  const isRoot = process.getuid?.() === 0
  const wantedBy = { name: 'the bench', command: 'npm run bench' }
  await installPrograms({ path: searchPath, isRoot, wanted, wantedBy })
}
