'use strict'
// The interop program for kafkajs. Flags and output follow the rules that all client programs share.

const fs = require('node:fs')
const crypto = require('node:crypto')
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32')
const zstd = require('@bokuweb/zstd-wasm')

const HEADER = 'sha256'
const LIMIT = 40_000 // ms that a check may take

CompressionCodecs[CompressionTypes.Snappy] = snappy

// lz4js marks its blocks as depending on each other, which Kafka refuses. Batches here are smaller than a block (4 MiB),
// and a block alone depends on none: so the flag can be set right, and the header's checksum with it.
function independent(frame) {
  frame[4] |= 0x20
  frame[6] = (xxh32.hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}

CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => Buffer.from(independent(lz4.compress(encoder.buffer))),
  decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const put = (object) => process.stdout.write(JSON.stringify(object) + '\n')
const assert = (ok, text) => {
  if (!ok) throw new Error(text)
}

function load(manifest) {
  return fs.readFileSync(manifest, 'utf8').trimEnd().split('\n').map((line) => {
    const [time, sum, , name, path] = line.split('\t')
    const value = fs.readFileSync(path)
    assert(crypto.createHash('sha256').update(value).digest('hex') === sum, `${path} has changed`)
    return { time, sum, name, value }
  })
}

/** Throws unless messages are texts[first…], at the offsets of the same numbers. */
function compare(texts, first, messages, checkTime) {
  assert(messages.length === texts.length - first, `${messages.length} records instead of ${texts.length - first}`)
  messages.forEach((m, i) => {
    const text = texts[first + i]
    const at = `offset ${m.offset}`
    assert(m.offset === String(first + i), `record ${first + i} has ${at}`)
    assert(m.key && m.key.toString() === text.name, `${at}: key ${m.key} instead of ${text.name}`)
    assert(m.value && m.value.equals(text.value), `${at}: value differs from ${text.name}`)
    assert(!checkTime || m.timestamp === text.time, `${at}: timestamp ${m.timestamp} instead of ${text.time}`)
    const sum = m.headers && m.headers[HEADER]
    assert(!sum || sum.toString() === text.sum, `${at}: header ${HEADER} is ${sum}`)
  })
}

class Checks {
  constructor(args, kafka) {
    this.args = args
    this.kafka = kafka
    this.texts = load(args.corpus)
    this.groups = 0
  }

  topic(name) {
    return `${this.args.prefix}-${name}`
  }

  async check(name, action) {
    const result = { client: this.args.client, version, check: name, ok: true }
    let timer
    try {
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('takes too long')), LIMIT)
      })
      await Promise.race([action(), late])
    } catch (e) {
      result.ok = false
      result.detail = String(e)
    }
    clearTimeout(timer)
    put(result)
    return result.ok
  }

  async run() {
    const codecs = this.args.codecs.split(',')
    const main = this.topic(codecs[0])
    await this.check('create', () => this.create(codecs))
    await this.check('delete', () => this.delete())
    for (const codec of codecs) {
      const wrote = await this.check(`produce ${codec}`, () => this.produce(this.topic(codec), codec))
      await this.check(`consume from start ${codec}`, async () => {
        assert(wrote, 'could not be written')
        await this.whole(this.topic(codec), true)
      })
    }
    await this.check('consume from end', () => this.consumeEnd())
    await this.check('consume by timestamp', () => this.consumeTime(main))
    await this.check('commit and resume', () => this.resume(main))
  }

  async read() {
    for (const entry of this.args.topics.split(',')) {
      const [client, codec, topic] = entry.split(':')
      await this.check(`read ${codec} from ${client}`, () => this.whole(topic, false))
    }
  }

  async admin(action) {
    const admin = this.kafka.admin()
    await admin.connect()
    try {
      return await action(admin)
    } finally {
      await admin.disconnect()
    }
  }

  async create(codecs) {
    await this.admin(async (admin) => {
      const topic = this.topic('created')
      const one = (name, numPartitions) => admin.createTopics({ topics: [{ topic: name, numPartitions, replicationFactor: 1 }] })
      assert(await one(topic, 3), 'not created')
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      assert(topics[0].partitions.length === 3, `metadata shows ${topics[0].partitions.length} partitions`)
      assert(!(await one(topic, 3)), 'creating the topic again is no error') // false is how this library tells
      for (const name of ['end', ...codecs]) assert(await one(this.topic(name), 1), 'not created')
    })
  }

  async delete() {
    await this.admin(async (admin) => {
      const topic = this.topic('deleted')
      await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] })
      await admin.deleteTopics({ topics: [topic] })
      let failed = false
      await admin.deleteTopics({ topics: [topic] }).catch(() => {
        failed = true
      })
      assert(failed, 'deleting the topic again is no error')
    })
  }

  async send(topic, compression, batches) {
    const producer = this.kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const answers = []
    try {
      for (const messages of batches) answers.push(await producer.send({ topic, compression, acks: -1, messages }))
    } finally {
      await producer.disconnect()
    }
    return answers
  }

  async produce(topic, codec) {
    // One send is one batch: as many texts as stay well below the broker's limit.
    const batches = [[]]
    let size = 0
    for (const t of this.texts) {
      if (size > 0 && size + t.value.length > 600_000) {
        batches.push([])
        size = 0
      }
      size += t.value.length
      batches.at(-1).push({ partition: 0, key: t.name, value: t.value, timestamp: t.time, headers: { [HEADER]: t.sum } })
    }
    const answers = await this.send(topic, CODECS[codec], batches)
    let next = 0
    batches.forEach((b, i) => {
      assert(answers[i][0].baseOffset === String(next), `a batch got offset ${answers[i][0].baseOffset} instead of ${next}`)
      next += b.length
    })
  }

  /** Reads n messages in a group of its own (this library has no other way), from an offset, or where seek is null. */
  async consume(group, topic, n, { seek = null, fromBeginning = true, commit = false, ready = () => {} } = {}) {
    const consumer = this.kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 1000, maxWaitTimeInMs: 500 })
    const messages = []
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning })
      await new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, (e) => reject(e.payload.error))
        consumer.on(consumer.events.FETCH_START, ready)
        consumer.run({
          autoCommit: false,
          eachBatch: async ({ batch }) => {
            for (const m of batch.messages) {
              if (messages.length < n && (seek === null || Number(m.offset) >= seek)) messages.push(m)
            }
            if (messages.length === n) resolve()
          },
        }).catch(reject)
        if (seek !== null) consumer.seek({ topic, partition: 0, offset: String(seek) })
      })
      if (commit) await consumer.commitOffsets([{ topic, partition: 0, offset: String(Number(messages.at(-1).offset) + 1) }])
    } finally {
      await consumer.disconnect()
    }
    return messages
  }

  newGroup() {
    this.groups += 1
    return `${this.args.prefix || 'read'}-${process.pid}-${this.groups}`
  }

  async whole(topic, checkTime) {
    compare(this.texts, 0, await this.consume(this.newGroup(), topic, this.texts.length), checkTime)
  }

  async consumeEnd() {
    const topic = this.topic('end')
    await this.send(topic, CODECS.none, [1, 2, 3].map((i) => [{ partition: 0, value: `old ${i}` }]))
    let sending = null
    const ready = () => {
      // Offsets are looked up when fetching starts: from then on, markers until one arrives.
      sending ??= (async () => {
        for (let i = 0; i < 20 && !done; i++) {
          await new Promise((resolve) => setTimeout(resolve, 500))
          await this.send(topic, CODECS.none, [[{ partition: 0, value: 'marker' }]])
        }
      })()
    }
    let done = false
    const [m] = await this.consume(this.newGroup(), topic, 1, { fromBeginning: false, ready })
    done = true
    await sending
    assert(Number(m.offset) >= 3 && m.value.toString() === 'marker', `got ${m.value} at offset ${m.offset}`)
  }

  async consumeTime(topic) {
    const middle = Math.floor(this.texts.length / 2)
    const end = String(this.texts.length)
    await this.admin(async (admin) => {
      for (const [time, want] of [
        [Number(this.texts[0].time) - 3_600_000, '0'],
        [Number(this.texts[middle].time), String(middle)],
        [Number(this.texts.at(-1).time) + 3_600_000, end], // this library answers the end where there is none
      ]) {
        const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, time)
        assert(found.offset === want, `timestamp ${time} is at offset ${found.offset} instead of ${want}`)
      }
    })
    const messages = await this.consume(this.newGroup(), topic, this.texts.length - middle, { seek: middle })
    compare(this.texts, middle, messages, true)
  }

  async resume(topic) {
    const group = this.topic('resume')
    const half = Math.floor(this.texts.length / 2)
    compare(this.texts.slice(0, half), 0, await this.consume(group, topic, half, { commit: true }), false)
    compare(this.texts, half, await this.consume(group, topic, this.texts.length - half, { commit: true }), false)
  }
}

/** A member of a group that tells what happens to it, until standard input ends. */
async function member(args, kafka) {
  const consumer = kafka.consumer({ groupId: args.group, sessionTimeout: 6000, heartbeatInterval: 1000, maxWaitTimeInMs: 300 })
  consumer.on(consumer.events.GROUP_JOIN, (e) => {
    put({ event: 'assigned', partitions: e.payload.memberAssignment[args.topic] || [] })
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [args.topic], fromBeginning: true })
  const ended = new Promise((resolve) => process.stdin.on('end', resolve).resume())
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      put({ event: 'record', partition, offset: Number(message.offset), value: message.value.toString() })
      const next = Number(message.offset) + 1
      await consumer.commitOffsets([{ topic, partition, offset: String(next) }])
      put({ event: 'committed', partition, offset: next })
    },
  })
  await ended
  await consumer.disconnect()
}

async function main() {
  await zstd.init()
  const args = {}
  for (let i = 2; i + 1 < process.argv.length; i += 2) args[process.argv[i].slice(2)] = process.argv[i + 1]
  const kafka = new Kafka({ clientId: 'interop', brokers: [args.bootstrap], logLevel: logLevel.NOTHING })
  if (args.role === 'member') await member(args, kafka)
  else if (args.role === 'checks') await new Checks(args, kafka).run()
  else if (args.role === 'read') await new Checks(args, kafka).read()
  else throw new Error(`unknown role ${args.role}`)
}

main().then(() => process.exit(0), (e) => {
  console.error(e)
  process.exit(2)
})
