//! Changes of membership and placement. A change that moves data is a [`Transition`]: nodes that gain data copy it and log that they
//! are ready; the record of the last one finishes the transition. Writes go on as before, since they go to the log.

use std::collections::{BTreeMap, BTreeSet};

use ilion_commitlog::Origin;
use uuid::Uuid;

use crate::apply::{Effect, Outcome};
use crate::fields::Endpoint;
use crate::levels::Feature;
use crate::placement::{Node, Strategy};
use crate::record::{Join, Takes};
use crate::refusal::Refusal;
use crate::state::{ClusterState, MEMBERS_MAX, Member, Moment, Phase, Transition, TransitionKind};

/// Maximum number of former members that are remembered.
pub(crate) const FORMER_MAX: usize = 1024;

impl ClusterState {
    pub(crate) fn join(&mut self, join: &Join) -> Outcome {
        let known = self.members.iter().find(|(_, member)| member.host == join.host);
        if let Some((node, member)) = known {
            if member.session == join.session {
                return Ok(vec![Effect::Repeated]);
            }
            return Err(Refusal::HostIsMember { node: *node });
        }
        if let Some(node) = self.former.get(&join.host) {
            return Err(Refusal::HostLeft { node: *node });
        }
        self.check_idle()?;
        if self.members.len() >= MEMBERS_MAX || self.next_node == Node::MAX {
            return Err(invalid("a cluster has at most 1024 members"));
        }
        if join.understands < self.level {
            let (node, understands) = (self.next_node, join.understands);
            return Err(Refusal::NotUnderstood { node, understands });
        }
        let (moves, replaces) = self.taken(&join.takes)?;
        let is_first = self.members.is_empty();
        let node = self.next_node;
        self.next_node += 1;
        let phase = if is_first { Phase::Normal } else { Phase::Joining };
        self.members
            .insert(node, Member::joining(join, phase, self.time_micros));
        let (host, session) = (join.host, join.session);
        let mut effects = vec![Effect::Joined { node, host, session }];
        if is_first {
            self.owners.fill(Some(node));
            effects.push(self.ring_changed());
            return Ok(effects);
        }
        if let Some(replaced) = replaces {
            self.set_phase(replaced, Phase::Leaving);
        }
        let moves = moves.into_iter().map(|slice| (slice, node)).collect();
        effects.extend(self.begin(TransitionKind::Join { node, replaces }, moves));
        Ok(effects)
    }

    /// The slices that a joining node gets, and the node that it replaces.
    fn taken(&self, takes: &Takes) -> Result<(Vec<u32>, Option<Node>), Refusal> {
        match takes {
            Takes::PlaceOf(node) => {
                self.check_normal(*node)?;
                Ok((self.slices_of(*node).collect(), Some(*node)))
            }
            Takes::Slices(slices) if self.members.is_empty() => {
                let all: Vec<u32> = (0..self.tablets.count()).collect();
                if *slices == all {
                    Ok((all, None))
                } else {
                    Err(invalid("the first node takes all slices, in order"))
                }
            }
            Takes::Slices(slices) => {
                let is_ascending = slices.is_sorted_by(|one, other| one < other);
                if slices.is_empty()
                    || !is_ascending
                    || slices.iter().any(|slice| *slice >= self.tablets.count())
                {
                    return Err(invalid("a node takes one slice or more, each once, in order"));
                }
                self.check_remaining(slices.iter().copied(), &BTreeSet::new())?;
                Ok((slices.clone(), None))
            }
        }
    }

    /// Checks that each node that loses some of these slices keeps or gets another one: a node without a token is not on the ring.
    fn check_remaining(
        &self,
        lost: impl Iterator<Item = u32>,
        gaining: &BTreeSet<Node>,
    ) -> Result<(), Refusal> {
        let lost: BTreeSet<u32> = lost.collect();
        let keeping: BTreeSet<Node> = (0..self.tablets.count())
            .filter(|slice| !lost.contains(slice))
            .filter_map(|slice| self.owner(slice, Moment::Now))
            .collect();
        let losing = lost.iter().filter_map(|slice| self.owner(*slice, Moment::Now));
        for node in losing {
            if !keeping.contains(&node) && !gaining.contains(&node) {
                return Err(invalid("every node keeps one slice or more"));
            }
        }
        Ok(())
    }

    pub(crate) fn start(
        &mut self,
        origin: Origin,
        session: Uuid,
        endpoint: Endpoint,
        understands: u32,
    ) -> Outcome {
        let (node, level, time_micros) = (origin.node, self.level, self.time_micros);
        let member = self.members.get_mut(&node).ok_or(Refusal::NoMember { node })?;
        if member.session == session {
            return Ok(vec![Effect::Repeated]);
        }
        if Some(origin.incarnation) != member.incarnation.checked_add(1) {
            let current = member.incarnation;
            return Err(Refusal::Superseded { node, current });
        }
        if understands < level {
            return Err(Refusal::NotUnderstood { node, understands });
        }
        member.session = session;
        member.incarnation = origin.incarnation;
        member.endpoint = endpoint;
        member.understands = understands;
        member.heard_micros = time_micros;
        let incarnation = member.incarnation;
        Ok(vec![Effect::Started {
            node,
            session,
            incarnation,
        }])
    }

    pub(crate) fn leave(&mut self, node: Node, moves: &[(u32, Node)]) -> Outcome {
        self.check_idle()?;
        self.check_normal(node)?;
        let moves = self.checked_moves(moves)?;
        let is_all = moves.keys().copied().eq(self.slices_of(node));
        if !is_all || moves.values().any(|owner| *owner == node) {
            return Err(invalid(
                "a node that leaves gives away all of its slices, and only those",
            ));
        }
        self.set_phase(node, Phase::Leaving);
        Ok(self.begin(TransitionKind::Leave { node }, moves))
    }

    pub(crate) fn move_slices(&mut self, moves: &[(u32, Node)]) -> Outcome {
        self.check_idle()?;
        let moves = self.checked_moves(moves)?;
        if moves.is_empty()
            || moves
                .iter()
                .any(|(slice, owner)| self.owner(*slice, Moment::Now) == Some(*owner))
        {
            return Err(invalid("each slice moves to another owner"));
        }
        let gaining = moves.values().copied().collect();
        self.check_remaining(moves.keys().copied(), &gaining)?;
        Ok(self.begin(TransitionKind::Move, moves))
    }

    /// The moves by slice. Each slice must come once, and its new owner must be a member that stays.
    fn checked_moves(&self, moves: &[(u32, Node)]) -> Result<BTreeMap<u32, Node>, Refusal> {
        let is_ascending = moves.is_sorted_by(|one, other| one.0 < other.0);
        if !is_ascending || moves.iter().any(|(slice, _)| *slice >= self.tablets.count()) {
            return Err(invalid("slices are named once, in order"));
        }
        moves
            .iter()
            .try_for_each(|(_, owner)| self.check_normal(*owner))?;
        Ok(moves.iter().copied().collect())
    }

    pub(crate) fn ready(&mut self, node: Node, number: u64, schema_epoch: u64) -> Outcome {
        let transition = self.of_number(number)?;
        let is_joining =
            matches!(transition.kind, TransitionKind::Join { node: joining, .. } if joining == node);
        if !is_joining && !self.gains().contains_key(&node) {
            let transition = number;
            return Err(Refusal::NotGaining { node, transition });
        }
        if schema_epoch < self.schema.placement_epoch {
            let current = self.schema.epoch;
            return Err(Refusal::SchemaMoved { current });
        }
        if let Some(tablet) = self.stranded(node).first().copied() {
            return Err(Refusal::Stranded { node, tablet });
        }
        if let Some(transition) = &mut self.transition {
            transition.ready.insert(node);
        }
        Ok(self.finish_if_ready())
    }

    pub(crate) fn cancel(&mut self, number: u64) -> Outcome {
        let kind = self.of_number(number)?.kind.clone();
        let transition = number;
        let mut effects = vec![Effect::Cancelled { transition }];
        match kind {
            TransitionKind::Join { node, replaces } => {
                effects.push(match self.has(Feature::FinalCancels) {
                    true => self.part_with(node),
                    false => self.remove(node),
                });
                if let Some(replaced) = replaces {
                    self.set_phase(replaced, Phase::Normal);
                }
            }
            TransitionKind::Leave { node } => self.set_phase(node, Phase::Normal),
            TransitionKind::Move => {}
            TransitionKind::Replication { .. } => return Err(Refusal::NotCancellable { transition }),
        }
        self.transition = None;
        Ok(effects)
    }

    /// Sets the replication of a keyspace, or forgets the keyspace. Another replication of a known keyspace is a transition.
    pub(crate) fn replicate(&mut self, keyspace: &str, strategy: Option<&Strategy>) -> Outcome {
        self.schema.placement_epoch = self.schema.epoch;
        let mut effects = self.cancel_replication(keyspace);
        let before = self.schema.keyspaces.get(keyspace);
        match strategy {
            None => {
                self.schema.keyspaces.remove(keyspace);
                effects.extend(self.copy_again());
            }
            Some(strategy) if before.is_none() => {
                self.schema
                    .keyspaces
                    .insert(keyspace.to_owned(), strategy.clone());
                effects.extend(self.copy_again());
            }
            Some(strategy) if before == Some(strategy) => {}
            Some(strategy) => {
                self.check_idle()?;
                let (keyspace, strategy) = (keyspace.to_owned(), strategy.clone());
                let kind = TransitionKind::Replication { keyspace, strategy };
                effects.extend(self.begin(kind, BTreeMap::new()));
            }
        }
        Ok(effects)
    }

    /// Ends the transition if it is for the replication of this keyspace, which gets another one or is dropped.
    fn cancel_replication(&mut self, name: &str) -> Vec<Effect> {
        let is_of_keyspace = |transition: &mut Transition| matches!(&transition.kind, TransitionKind::Replication { keyspace, .. } if keyspace == name);
        let cancelled = self.transition.take_if(is_of_keyspace);
        let transition = cancelled.map(|transition| transition.number);
        transition
            .map(|transition| Effect::Cancelled { transition })
            .into_iter()
            .collect()
    }

    /// Asks all nodes to report again, since they may have to copy more than they knew.
    fn copy_again(&mut self) -> Vec<Effect> {
        let Some(transition) = &mut self.transition else {
            return Vec::new();
        };
        transition.ready.clear();
        let number = transition.number;
        self.copy(number)
    }

    fn begin(&mut self, kind: TransitionKind, moves: BTreeMap<u32, Node>) -> Vec<Effect> {
        let number = self.next_transition;
        self.next_transition += 1;
        let ready = BTreeSet::new();
        self.transition = Some(Transition {
            number,
            kind,
            moves,
            ready,
        });
        self.copy(number)
    }

    /// Returns the effect that lists what is to be copied; finishes the transition if no node has to copy.
    fn copy(&mut self, transition: u64) -> Vec<Effect> {
        let finished = self.finish_if_ready();
        if !finished.is_empty() {
            return finished;
        }
        let tablets = |gained: BTreeSet<(u32, String)>| {
            let tablets: BTreeSet<u32> = gained.into_iter().map(|(tablet, _)| tablet).collect();
            tablets.into_iter().collect()
        };
        let gains = self
            .gains()
            .into_iter()
            .map(|(node, gained)| (node, tablets(gained)));
        let gains = gains.collect();
        vec![Effect::Copy { transition, gains }]
    }

    fn finish_if_ready(&mut self) -> Vec<Effect> {
        let Some(transition) = &self.transition else {
            return Vec::new();
        };
        let mut waiting: BTreeSet<Node> = self.gains().into_keys().collect();
        if let TransitionKind::Join { node, .. } = transition.kind {
            waiting.insert(node);
        }
        if !waiting.is_subset(&transition.ready) {
            return Vec::new();
        }
        self.transition
            .take()
            .map_or_else(Vec::new, |transition| self.finish(transition))
    }

    fn finish(&mut self, transition: Transition) -> Vec<Effect> {
        for (slice, owner) in &transition.moves {
            if let Some(place) = self.owners.get_mut(*slice as usize) {
                *place = Some(*owner);
            }
        }
        let mut effects = Vec::new();
        match transition.kind {
            TransitionKind::Join { node, replaces } => {
                self.set_phase(node, Phase::Normal);
                effects.push(self.ring_changed());
                effects.extend(replaces.map(|replaced| self.part_with(replaced)));
            }
            TransitionKind::Leave { node } => {
                effects.push(self.ring_changed());
                effects.push(self.part_with(node));
            }
            TransitionKind::Move => effects.push(self.ring_changed()),
            TransitionKind::Replication { keyspace, strategy } => {
                self.schema.keyspaces.insert(keyspace.clone(), strategy);
                effects.push(Effect::ReplicationChanged { keyspace });
            }
        }
        self.forget_positions();
        effects
    }

    /// Forgets up to where a node has flushed a tablet if the node is not a replica of the tablet any more. If it becomes one again, it
    /// copies the tablet anew.
    fn forget_positions(&mut self) {
        let replicas = self.all_replicas(Moment::Now);
        let is_replica =
            |tablet: &u32, node: &Node| replicas.get(tablet).is_some_and(|nodes| nodes.contains(node));
        let tablets = self.tablets.count();
        self.flushed
            .retain(|(tablet, node), _| *tablet >= tablets || is_replica(tablet, node));
    }

    fn ring_changed(&mut self) -> Effect {
        self.ring_version += 1;
        let version = self.ring_version;
        Effect::RingChanged { version }
    }

    /// Removes a member, and remembers its host id.
    fn part_with(&mut self, node: Node) -> Effect {
        if let Some(host) = self.members.get(&node).map(|member| member.host) {
            self.former.insert(host, node);
        }
        if self.former.len() > FORMER_MAX {
            let oldest = self
                .former
                .iter()
                .min_by_key(|(_, node)| **node)
                .map(|(host, _)| *host);
            oldest.map(|host| self.former.remove(&host));
        }
        self.remove(node)
    }

    fn remove(&mut self, node: Node) -> Effect {
        self.members.remove(&node);
        self.windows.forget(node);
        self.flushed.retain(|(_, other), _| *other != node);
        self.outcomes.leave(node);
        Effect::Left { node }
    }

    fn set_phase(&mut self, node: Node, phase: Phase) {
        if let Some(member) = self.members.get_mut(&node) {
            member.phase = phase;
        }
    }

    fn check_idle(&self) -> Result<(), Refusal> {
        self.transition.as_ref().map_or(Ok(()), |transition| {
            let transition = transition.number;
            Err(Refusal::Busy { transition })
        })
    }

    fn check_normal(&self, node: Node) -> Result<(), Refusal> {
        match self.members.get(&node).map(|member| member.phase) {
            None => Err(Refusal::NoMember { node }),
            Some(Phase::Normal) => Ok(()),
            Some(Phase::Joining | Phase::Leaving) => Err(Refusal::NotNormal { node }),
        }
    }

    fn of_number(&self, number: u64) -> Result<&Transition, Refusal> {
        let transition = self
            .transition
            .as_ref()
            .filter(|transition| transition.number == number);
        transition.ok_or(Refusal::NoTransition { transition: number })
    }
}

fn invalid(rule: &'static str) -> Refusal {
    Refusal::Invalid { rule }
}

impl Member {
    fn joining(join: &Join, phase: Phase, time_micros: i64) -> Self {
        Self {
            host: join.host,
            session: join.session,
            incarnation: 1,
            endpoint: join.endpoint,
            location: join.location.clone(),
            phase,
            understands: join.understands,
            release: None,
            heard_micros: time_micros,
            schema_epoch: 0,
        }
    }
}
